package layout

import (
	"net/http"
	"net/url"
	"time"
)

// ZoneCookie is the name of the cookie with the reader's time zone, as the tz database
// names it. js/zone.js sets it.
const ZoneCookie = "zone"

// Zone returns the reader's time zone; UTC while it is not known.
func Zone(request *http.Request) *time.Location {
	cookie, err := request.Cookie(ZoneCookie)
	if err != nil {
		return time.UTC
	}
	name, err := url.QueryUnescape(cookie.Value)
	if err != nil || name == "" || name == "Local" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}
