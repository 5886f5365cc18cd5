package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
)

// pipeline answers with the effective pipeline of the request's key and the source of each value.
func (s *Server) pipeline(c echo.Context) error {
	request := c.Request()
	codec := codecFor(request)
	event := s.begin(request, "/v1/pipeline")
	key, err := s.authenticate(request.Context(), request, event)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	asked, err := readControls(request.Header)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	if err := key.Limits.CheckOverrides(asked.overrides); err != nil {
		return s.refuse(c, codec, event, err)
	}
	layer, err := asked.layer()
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	config, sources, err := s.Settings.Config(request.Context(), key, layer)
	if err != nil {
		return s.refuse(c, codec, event, err)
	}
	return c.JSON(http.StatusOK, struct {
		Pipeline pipeline.Config  `json:"pipeline"`
		Sources  pipeline.Sources `json:"sources"`
	}{config, sources})
}
