package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// Recorded sessions pass both ways: no body is refused, and the messages reach Amazon Bedrock byte for byte.
func TestRecordedSessionsPassBedrock(t *testing.T) {
	t.Parallel()
	files := sharedtest.Files(t, "data/transcripts/*.anthropic.json")
	for i := range fulltest.Part(len(files)) {
		file := files[i]
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			body := wire.Set(wire.Delete(recorded, "stream"), "model", json.RawMessage(`"`+bedrockModel+`"`))
			p, double := onBedrock(t, tenants.AuthSigV4, accessKey+":"+accessSecret, func(c *providerdouble.BedrockConfig) { c.Window = 2_000_000 })
			double.Models.Trust(recorded)
			p.sendWhole(body, "/v1/messages")
			own := wire.Set(wire.Delete(body, "model"), "anthropic_version", json.RawMessage(`"bedrock-2023-05-31"`))
			p.sendWhole(own, "/model/"+bedrockModel+"/invoke")
			for _, got := range double.Models.Requests() {
				if got.Status != http.StatusOK || !bytes.Equal(wire.Get(got.Body, "messages"), wire.Get(recorded, "messages")) {
					t.Errorf("%s: status %d, %d bytes of messages, want %d", got.Path, got.Status, len(wire.Get(got.Body, "messages")), len(wire.Get(recorded, "messages")))
				}
			}
		})
	}
}

// sendWhole sends a body whose prompt must not be compressed.
func (p *proxy) sendWhole(body []byte, path string) {
	p.t.Helper()
	if got := p.send(http.MethodPost, path, string(body), "X-Palimpsest-Bypass", "true"); got.status != http.StatusOK {
		p.t.Errorf("%s: %d %.300s", path, got.status, got.body)
	}
}
