package redaction_test

import (
	"strings"
	"testing"

	"palimpsest/tenants/redaction"
)

// S14: each form is found where nothing else in the text hints at a secret.
func TestEverySecretFormIsRedacted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sk-abcd1234":                      "[redacted]",
		"rk-abcd1234":                      "[redacted]",
		"pk-abcd1234":                      "[redacted]",
		"sk_live_abcd1234":                 "[redacted]",
		"rk_test_abcd1234":                 "[redacted]",
		"pk_abcd1234":                      "[redacted]",
		"plm_live_abcdefghijkl":            "[redacted]",
		"gsk_abcd1234":                     "[redacted]",
		"AIzaSyAbcdefghij0123456789":       "[redacted]",
		"whsec_abcd1234":                   "[redacted]",
		"bearer abcd1234":                  "[redacted]",
		"Bearer abcd1234":                  "[redacted]",
		"BEARER\tabcd1234":                 "[redacted]",
		"basic abcd1234==":                 "[redacted]",
		"BASIC abcd1234==":                 "[redacted]",
		"eyJhbGciOiJ.eyJzdWIi.c2ln":        "[redacted]",
		"redis://:secret@cache:6379":       "redis://[redacted]@cache:6379",
		"postgres://app:secret@db/product": "postgres://[redacted]@db/product",
		"/x?key=secret&a=b":                "/x?key=[redacted]&a=b",
		"/x?a=b&api_key=secret":            "/x?a=b&api_key=[redacted]",
		"/x?apiKey=secret":                 "/x?apiKey=[redacted]",
		"/x?KEY=secret":                    "/x?KEY=[redacted]",
		"/x?token=secret":                  "/x?token=[redacted]",
		"/x?Token=secret":                  "/x?Token=[redacted]",
		"/x?access_token=secret":           "/x?access_token=[redacted]",
		"/x?ACCESS_TOKEN=secret":           "/x?ACCESS_TOKEN=[redacted]",
		"task-12345678 and work_12345678":  "task-12345678 and work_12345678",
		"/x?monkey=banana&tokens=12":       "/x?monkey=banana&tokens=12",
	} {
		if got := redaction.Text(text); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, got, want)
		}
	}
}

// S14: whatever a member's value looks like, its name is enough.
func TestEveryMemberNamedLikeASecretIsRedacted(t *testing.T) {
	t.Parallel()
	names := []string{
		"authorization", "Proxy-Authorization", "x-api-key", "api_key", "api-key", "apiKey", "x-goog-api-key", "x-provider-key", "X-Palimpsest-Provider-Key",
		"cookie", "set-cookie", "password", "secret", "client_secret", "clientSecret", "token", "access_token", "refreshToken",
	}
	for _, name := range names {
		for _, value := range []string{`"canary"`, `"a \" canary"`, `["canary","canary"]`} {
			got := string(redaction.Members([]byte(`{"` + name + `": ` + value + `,"fine":1}`)))
			if strings.Contains(got, "canary") || !strings.HasSuffix(got, `,"fine":1}`) {
				t.Errorf("%s: %s becomes %s", name, value, got)
			}
		}
	}
	for _, kept := range []string{`{"max_tokens":12}`, `{"prompt_tokens":"12"}`, `{"key":"plm_live_ab"}`} {
		if got := string(redaction.Members([]byte(kept))); got != kept {
			t.Errorf("%s becomes %s", kept, got)
		}
	}
}
