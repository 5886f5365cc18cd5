package upstream

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

func TestGoogleRequestsHaveTheirOwnForm(t *testing.T) {
	t.Parallel()
	target := Target{Provider: tenants.ProviderAnthropic, Platform: tenants.PlatformGoogle, BaseURL: "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"}
	const version = `"anthropic_version":"vertex-2023-10-16"`
	for name, test := range map[string]struct{ method, asked, body, path, want string }{
		"plain":       {"POST", "/v1/messages?beta=true", `{"model":"m@1","a":1}`, "m@1:rawPredict", `{` + version + `,"a":1}`},
		"streamed":    {"POST", "/v1/messages", `{"a":[{"model":"x"}],"stream": true , "model":"m"}`, "m:streamRawPredict", `{` + version + `,"a":[{"model":"x"}],"stream": true}`},
		"own version": {"POST", "/v1/messages", `{"model":"m", ` + version + `,"stream":false}`, "m:rawPredict", `{` + version + `,"stream":false}`},
		"count":       {"POST", "/v1/messages/count_tokens", `{"model":"m"}`, "count-tokens:rawPredict", `{` + version + `,"model":"m"}`},
	} {
		got, _, err := google{}.rewrite(Request{Method: test.method, Path: test.asked, Body: []byte(test.body)}, target)
		if err != nil || got.Path != googleModels+test.path || strings.ReplaceAll(string(got.Body), "{ ", "{") != test.want {
			t.Errorf("%s: %s %s, %v, want %s %s", name, got.Path, got.Body, err, test.path, test.want)
		}
	}
	for _, asked := range []Request{{Path: "/v1/models"}, {Path: "/v1/files"}, {Path: "/v1/messages", Body: []byte(`{}`)}, {Path: "/v1/messages", Stream: http.NoBody}} {
		if _, _, err := (google{}).rewrite(asked, target); err == nil {
			t.Errorf("%s is served", asked.Path)
		}
	}
}

func TestModelIsReadFromPathsOfGoogleCloud(t *testing.T) {
	t.Parallel()
	const before = "/projects/p/locations/l/publishers/anthropic/models/"
	for path, want := range map[string]string{
		before + "claude-x@1:rawPredict": "claude-x@1", before + "claude-x%401:streamRawPredict": "claude-x@1", before + "count-tokens:rawPredict": "counts",
		before + ":rawPredict": "refused", before + "a:predict": "refused", before + "a/b:rawPredict": "refused", "/projects/p/locations/l/publishers/google/models/g:rawPredict": "refused",
	} {
		model, counts, ok := GoogleModelIn(path)
		got := model
		if counts {
			got = "counts"
		} else if !ok {
			got = "refused"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// BenchmarkGoogleRequest measures what the platform adds to a request.
func BenchmarkGoogleRequest(b *testing.B) {
	target := Target{Provider: tenants.ProviderAnthropic, Platform: tenants.PlatformGoogle, BaseURL: "https://aiplatform.googleapis.com/v1/projects/p/locations/global"}
	for name, size := range map[string]int{"1KB": 1 << 10, "800KB": 800 << 10} {
		b.Run(name, func(b *testing.B) {
			body := []byte(`{"model":"claude-x","max_tokens":1,"stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word \\n ", size/8) + `"}]}`)
			for b.Loop() {
				if _, _, _, err := onPlatform(Request{Method: http.MethodPost, Path: "/v1/messages", Body: body}, target); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
