package pages_test

import (
	"net/http"
	"testing"

	"palimpsest/web/webtest"
)

// S11: anyone who tries domains, or comes back with what proves nothing, is slowed down as
// at other log-ins; those who succeed are not counted.
func TestRefusedSignOnsOfOnePlaceAreSlowedDown(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	for range 11 {
		c.begin(t, c.Stranger(t), mira())
	}
	browser := c.Stranger(t)
	back := c.begin(t, browser, mira())
	for name, try := range map[string]func() webtest.Page{
		"unknown domains": func() webtest.Page { return c.Stranger(t).Post("/login/sign-on", "email", "who@unknown.example") },
		"coming back with nothing": func() webtest.Page {
			return c.Stranger(t).Get("/login/sign-on/callback?state=x&code=y")
		},
	} {
		for range 10 {
			if page := try(); page.Status != http.StatusUnprocessableEntity && page.Status != http.StatusForbidden {
				t.Fatalf("%s: %d", name, page.Status)
			}
		}
		if page := try(); page.Status != http.StatusTooManyRequests || page.Header.Get("Retry-After") == "" || page.TestID("error-form") == "" {
			t.Errorf("%s: the eleventh: %d, %s", name, page.Status, page.TestID("error-form"))
		}
	}
	if page := c.Stranger(t).Post("/login/sign-on", "email", "who@corp.example"); page.Status != http.StatusTooManyRequests {
		t.Errorf("a known domain after ten unknown ones: %d", page.Status)
	}
	if page := browser.Get(back); page.Status != http.StatusTooManyRequests {
		t.Errorf("a good answer after ten bad ones: %d", page.Status)
	}
}
