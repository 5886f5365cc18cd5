package providers

import (
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// CSV answers with the list of provider keys as a file. Of secrets it holds only the part that the page
// shows.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	m, err := h.model(c.Request().Context(), who)
	if err != nil {
		return err
	}
	rows := [][]string{{
		"id", "name", "provider", "key", "base_url", "models", "default", "off", "added_at", "tested_at", "test_passed", "test_problem",
		"refused_since", "requests_refused", "last_error_at", "last_error", "requests_30d", "cost_30d_micro_usd",
	}}
	for _, key := range m.Keys {
		rows = append(rows, record(key, m.Uses[key.ID]))
	}
	return layout.CSV(c, "palimpsest-providers.csv").WriteAll(rows)
}

func record(key tenants.ProviderKey, use tenants.ProviderKeyUse) []string {
	passed := ""
	if !key.Check.At.IsZero() {
		passed = strconv.FormatBool(key.Check.OK)
	}
	return []string{
		key.ID.String(), tenants.CSVCell(key.Name), title(key), "…" + key.Last4, tenants.CSVCell(key.BaseURL), tenants.CSVCell(strings.Join(key.Models, ", ")),
		strconv.FormatBool(key.Default), strconv.FormatBool(key.Disabled), tenants.CSVTime(key.CreatedAt),
		tenants.CSVTime(key.Check.At), passed, tenants.CSVCell(key.Check.Problem),
		tenants.CSVTime(use.Since), strconv.FormatInt(use.Rejected, 10), tenants.CSVTime(use.LastErrorAt), tenants.CSVCell(lastError(use)),
		strconv.FormatInt(use.Exchanges, 10), strconv.FormatInt(use.CostMicroUSD, 10),
	}
}
