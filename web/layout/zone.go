package layout

import (
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/web/components"
)

// ZoneCookie is the name of the cookie with the reader's time zone, as the tz database
// names it. js/zone.js sets it.
const ZoneCookie = "zone"

// Zone returns the time zone that a page is in: the reader's own, else that of
// WithZone, else UTC. Every time and day on a page, and every one that is typed there,
// is of this zone; files and the API are in UTC.
func Zone(request *http.Request) *time.Location {
	if zone := ownZone(request); zone != nil {
		return zone
	}
	return components.Zone(request.Context())
}

// KnowsZone reports whether the reader's own time zone is known.
func KnowsZone(request *http.Request) bool { return ownZone(request) != nil }

// WithZone has the page that answers a request be in a time zone while the reader's own
// is not known. A zone that the tz database does not name changes nothing.
func WithZone(c echo.Context, name string) {
	if zone := zoneOf(name); zone != nil {
		request := c.Request()
		c.SetRequest(request.WithContext(components.WithZone(request.Context(), zone)))
	}
}

// ownZone returns the zone that the reader's browser tells; nil: it tells none.
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

// zoneOf returns the zone that the tz database has under a name; nil if none. The
// server's own zone is nobody's.
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
