package manage_test

import (
	"net/http"
	"testing"
)

// S34: what one reader takes for the value, and another does not, is refused. Go decodes names
// in letters of either case, with the long s and the Kelvin sign among them.
func TestRepeatedMembersAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ant")
	for name, body := range map[string]string{
		"twice":              `{"name":"x","scopes":["proxy"],"scopes":["read"]}`,
		"the same value":     `{"name":"x","name":"x","scopes":["proxy"]}`,
		"another case":       `{"name":"x","Name":"y","scopes":["proxy"]}`,
		"escaped":            `{"name":"x","n\u0061me":"y","scopes":["proxy"]}`,
		"a long s":           `{"name":"x","scopes":["proxy"],"ſcopes":["read"]}`,
		"in an object":       `{"name":"x","scopes":["proxy"],"no_store":true,"NO_STORE":false}`,
		"behind other types": `{"name":"x","allowed_models":["a","b"],"expires_at":null,"scopes":["proxy"],"allowed_models":[]}`,
	} {
		answer := w.send(t, http.MethodPost, "/keys", body)
		if answer.status != http.StatusUnprocessableEntity || answer.field(t) == "" {
			t.Errorf("%s: status %d: %s", name, answer.status, answer.body)
		}
	}
	w.send(t, http.MethodPost, "/keys", `{"name":"scopes","scopes":["proxy","read"],"allowed_models":["name","scopes"]}`).want(t, http.StatusCreated)
}
