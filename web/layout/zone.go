package layout

import (
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/web/components"
)

// ZoneCookie is the name of the cookie with the reader's time zone, by its tz database name. js/zone.js sets
// it.
const ZoneCookie = "zone"

// Zone returns a page's time zone: the reader's own, else WithZone's, else UTC. All times and days on a page,
// and those typed there, are in this zone. Files and the API use UTC.
func Zone(request *http.Request) *time.Location {
	if zone := ownZone(request); zone != nil {
		return zone
	}
	return components.Zone(request.Context())
}

// KnowsZone reports whether the reader's own time zone is known.
func KnowsZone(request *http.Request) bool { return ownZone(request) != nil }

// WithZone sets the page's time zone for readers whose own is unknown. It ignores zones that the tz database
// does not have.
func WithZone(c echo.Context, name string) {
	if zone := zoneOf(name); zone != nil {
		request := c.Request()
		c.SetRequest(request.WithContext(components.WithZone(request.Context(), zone)))
	}
}

// ownZone returns the zone from the reader's browser, or nil.
func ownZone(request *http.Request) *time.Location {
	cookie, err := request.Cookie(ZoneCookie)
	if err != nil {
		return nil
	}
	name, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		return nil
	}
	return zoneOf(name)
}

// zoneOf returns a zone of the tz database, or nil. "Local" is refused because it is the server's zone, not
// the reader's.
func zoneOf(name string) *time.Location {
	if name == "" || name == "Local" {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}
