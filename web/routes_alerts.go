package web

import (
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/alerts"
	"palimpsest/web/paths"
)

// registerAlerts adds the page of alerts.
func (s *Server) registerAlerts(pages *echo.Group) {
	told := alerts.New(s.deps.Traffic.Alerts, s.config.Now)
	pages.GET(paths.Alerts, s.as(tenants.ManageSettings, told.Show))
	pages.POST(paths.Alerts, s.as(tenants.ManageSettings, told.Save))
	pages.GET(paths.AlertChannels+"/new", s.as(tenants.ManageSettings, told.New))
	pages.POST(paths.AlertChannels, s.as(tenants.ManageSettings, told.Add))
	pages.GET(paths.AlertChannels+"/:id", s.as(tenants.ManageSettings, told.Edit))
	pages.POST(paths.AlertChannels+"/:id", s.as(tenants.ManageSettings, told.Change))
	pages.POST(paths.AlertChannels+"/:id/test", s.as(tenants.ManageSettings, told.Test))
	pages.POST(paths.AlertChannels+"/:id/remove", s.as(tenants.ManageSettings, told.Remove))
	pages.POST(paths.AlertDeliveries+"/:id/retry", s.as(tenants.ManageSettings, told.Retry))
}
