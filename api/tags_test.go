package api

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// X-Palimpsest-Tag-<name> is recorded with the exchange and taken off before the
// provider, on every way through the proxy.
func TestTagsAreRecordedAndNeverSent(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	for n, way := range []struct{ method, path, body string }{
		{http.MethodPost, messagesPath, `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`},
		{http.MethodPost, chatPath, `{"model":"gpt-5.5","messages":[{"role":"user","content":"hi"}]}`},
		{http.MethodPost, responsesPath, `{"model":"gpt-5.5","input":"hi","store":false}`},
		{http.MethodPost, countPath, `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"hi"}]}`},
		{http.MethodPost, "/v1/embeddings", `{"model":"text-embedding-3-small","input":"hi"}`},
	} {
		p.send(way.method, way.path, way.body, "x-palimpsest-tag-TEAM", "search", "X-Palimpsest-Tag-run-7", "“α” = 1 %")
		kept := p.last(n + 1)
		if want := (tenants.Tags{"team": "search", "run-7": "“α” = 1 %"}); !maps.Equal(kept.Request.Tags, want) {
			t.Errorf("%s: kept %v", way.path, kept.Request.Tags)
		}
		sent, ok := double.Last()
		if !ok {
			t.Fatalf("%s: the provider saw nothing", way.path)
		}
		for name := range sent.Header {
			if strings.HasPrefix(name, "X-Palimpsest-") {
				t.Errorf("%s: the provider saw %s", way.path, name)
			}
		}
	}
	p.send(http.MethodPost, chatPath, `{"model":"gpt-5.5","messages":[{"role":"user","content":"hi"}]}`)
	if kept := p.last(6); kept.Request.Tags != nil {
		t.Errorf("without any, kept %v", kept.Request.Tags)
	}
}

// A tag that cannot be kept is refused in the client's dialect, and says what to do.
func TestBadTagsAreRefusedWithWhatIsAllowed(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	var many []string
	for i := range 11 {
		many = append(many, fmt.Sprintf("X-Palimpsest-Tag-T%d", i), "v")
	}
	bodies := map[string]string{
		messagesPath: `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`,
		chatPath:     `{"model":"gpt-5.5","messages":[{"role":"user","content":"hi"}]}`,
	}
	n := 0
	for name, test := range map[string]struct {
		header []string
		says   string
	}{
		"no name":          {[]string{"X-Palimpsest-Tag-", "v"}, "is no name of a tag: use 1 to 64"},
		"an underscore":    {[]string{"X-Palimpsest-Tag-A_b", "v"}, "X-Palimpsest-Tag-A_b"},
		"a long name":      {[]string{"X-Palimpsest-Tag-" + strings.Repeat("a", 65), "v"}, "letters a to z, digits and hyphens"},
		"no value":         {[]string{"X-Palimpsest-Tag-Team", ""}, "X-Palimpsest-Tag-Team: must have a value of 1 to 256"},
		"a long value":     {[]string{"X-Palimpsest-Tag-Team", strings.Repeat("ä", 257)}, "256 printable characters"},
		"what is not text": {[]string{"X-Palimpsest-Tag-Team", "a\xff"}, "printable"},
		"a tab":            {[]string{"X-Palimpsest-Tag-Team", "a\tb"}, "printable"},
		"a hidden sign":    {[]string{"X-Palimpsest-Tag-Team", "a\u202eb"}, "printable"},
		"eleven of them":   {many, "send at most 10 tags"},
	} {
		for path, body := range bodies {
			got := p.send(http.MethodPost, path, body, test.header...)
			n++
			dialect := map[string]string{messagesPath: `{"type":"error","error":{"type":"invalid_request_error"`, chatPath: `{"error":{"message":`}[path]
			if got.status != http.StatusBadRequest || !strings.HasPrefix(string(got.body), dialect) || !strings.Contains(string(got.body), test.says) {
				t.Errorf("%s: status %d: %s", name, got.status, got.body)
			}
			if kept := p.last(n); kept.Request.Tags != nil || kept.Answer.Status != http.StatusBadRequest {
				t.Errorf("%s: kept %v", name, kept.Request.Tags)
			}
		}
	}
	if _, err := tagsIn(http.Header{"X-Palimpsest-Tag-Team": {"a", "b"}}); err == nil || !strings.Contains(err.Error(), "more than once") {
		t.Errorf("two values: %v", err)
	}
	ten, err := tagsIn(http.Header{
		"X-Palimpsest-Tag-" + strings.Repeat("A", 64): {strings.Repeat("ä", 256)}, "X-Palimpsest-Tagged": {"no tag"}, "X-Palimpsest-Tag-1": {"="},
	})
	if err != nil || len(ten) != 2 || ten["1"] != "=" {
		t.Errorf("at the bounds: %v, %v", ten, err)
	}
}

// What tags cost a request: in the microseconds.
func BenchmarkTags(b *testing.B) {
	header := http.Header{}
	for i := range 30 {
		header.Set(fmt.Sprintf("X-Stainless-%d", i), "value")
	}
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if tags, err := tagsIn(header); err != nil || tags != nil {
				b.Fatal(tags, err)
			}
		}
	})
	tagged := header.Clone()
	for i := range tenants.MaxTags {
		tagged.Set(fmt.Sprintf("%sName-%d", tagHeader, i), uuid.NewString())
	}
	b.Run("ten", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if tags, err := tagsIn(tagged); err != nil || len(tags) != tenants.MaxTags {
				b.Fatal(tags, err)
			}
		}
	})
}
