// Package pages_test tests the pages of the dashboard through the running product. It is one package
// because a test program for each page would link the whole product again.
package pages_test

import (
	"testing"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

func TestMain(m *testing.M) { dbtest.Main(m, browsertest.Stop) }

// blind returns an admin who sees every session and request, but reads none, because managers read their own only.
func blind(person *webtest.Person) *webtest.Person {
	person.Post("/settings", "time_zone", "UTC", "managers_read", "own", "members_read", "own", "viewers_read", "none")
	return person.Colleague(tenants.Admin)
}
