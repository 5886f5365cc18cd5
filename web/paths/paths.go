// Package paths names every path of the dashboard: handlers and views ask it, so
// that a path is written once.
package paths

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// The paths without a parameter.
const (
	Home         = "/"
	SignUp       = "/signup"
	LogIn        = "/login"
	LogOut       = "/logout"
	Theme        = "/theme"
	Overview     = "/overview"
	FirstRequest = "/overview/first-request"
	// FirstRequestBare is the same without links.
	FirstRequestBare = FirstRequest + "?bare=1"
	Keys             = "/keys"
	NewKey           = "/keys/new"
	Providers        = "/providers"
	NewProvider      = "/providers/new"
	Pipeline         = "/pipeline"
	Sessions         = "/sessions"
	More             = "/more"
	Billing          = "/billing"
	BillingCheckout  = Billing + "/checkout"
	BillingPortal    = Billing + "/portal"
)

// RevokeKey is the path to revoke an API key at.
func RevokeKey(id uuid.UUID) string { return Keys + "/" + id.String() + "/revoke" }

// TestProvider is the path to test a provider key at.
func TestProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/test" }

// RemoveProvider is the path to remove a provider key at.
func RemoveProvider(id uuid.UUID) string { return Providers + "/" + id.String() + "/remove" }

// Session is the path of a session.
func Session(id uuid.UUID) string { return Sessions + "/" + id.String() }

// OriginalBytes is the path of one archived message's bytes in the product API.
func OriginalBytes(session, lane uuid.UUID, index int) string {
	return With("/api/v1/sessions/"+session.String()+"/archive/"+strconv.Itoa(index), "lane", lane.String())
}

// With returns path with a query of names and values; an empty value is left out.
func With(path string, namesAndValues ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			query.Set(namesAndValues[i], namesAndValues[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Local returns next if it is a path of this site, and Overview otherwise: a link
// must not lead a person who logs in to another site.
func Local(next string) string {
	parsed, err := url.Parse(next)
	switch {
	case err != nil, parsed.Scheme != "", parsed.Host != "", parsed.User != nil:
		return Overview
	case !strings.HasPrefix(next, "/"), strings.HasPrefix(next, "//"), strings.ContainsAny(next, "\\\r\n\t"):
		return Overview
	}
	return next
}

// Export is where a whole session is downloaded, with what verifies it.
func Export(session uuid.UUID) string { return "/api/v1/sessions/" + session.String() + "/export" }
