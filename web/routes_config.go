package web

import (
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/paths"
	"palimpsest/web/pipelines"
)

// registerVersions adds the history of the pipeline, and the pipeline as YAML.
func (s *Server) registerVersions(pages *echo.Group) {
	saved := pipelines.New(s.deps.Pipelines, s.config.Defaults)
	pages.GET(paths.PipelineHistory, s.as(tenants.ReadConfig, saved.History))
	pages.GET(paths.PipelineHistory+"/:version", s.as(tenants.ReadConfig, saved.Show))
	pages.GET(paths.PipelineHistory+"/:version/restore", s.as(tenants.ManagePipeline, saved.ConfirmRestore))
	pages.POST(paths.PipelineHistory+"/:version/restore", s.as(tenants.ManagePipeline, saved.Restore))
	pages.GET(paths.PipelineYAML, s.as(tenants.ReadConfig, saved.YAML))
	pages.GET(paths.PipelineFile, s.as(tenants.ReadConfig, saved.Download))
	pages.GET(paths.EditPipelineYAML, s.as(tenants.ManagePipeline, saved.Edit))
	pages.POST(paths.PipelineYAML, s.as(tenants.ManagePipeline, saved.Save))
}
