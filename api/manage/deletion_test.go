package manage_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/archive/export"
	"palimpsest/tenants"
)

// S31: the export holds everything, opens without us, and its hashes match.
func TestEverythingIsExportedAndVerifies(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, b := p.tenant(t, "ant"), p.tenant(t, "zebra")
	answer := a.send(t, http.MethodGet, "/export", "")
	answer.want(t, http.StatusOK)
	totals, err := export.VerifyBundle(bytes.NewReader(answer.body), func(fault export.Fault) { t.Error(fault) })
	if err != nil || totals.Sessions != 1 || totals.Messages != len(a.messages) {
		t.Fatalf("%+v, %v", totals, err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(bytes.NewReader(answer.body)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
	for name, part := range map[string]string{
		"workspace.json": "ant@example.com", "api_keys.json": a.keyID, "provider_keys.json": a.providerKey, "pipeline.json": "targetUtilization",
		"model_windows.json": "64000", "patterns.ndjson": a.pattern, "audit.ndjson": string(tenants.PatternAdded), "usage.ndjson": a.request.String(),
		"sessions/" + a.session.String() + ".ndjson": "question 3 of ant", "manifest.json": "sha256",
	} {
		if !strings.Contains(files[name], part) {
			t.Errorf("%s does not hold %q: %.300s", name, part, files[name])
		}
	}
	for _, secret := range []string{canaryKey, a.manage, a.read, b.workspace.String(), b.session.String(), "zebra"} {
		if bytes.Contains(answer.body, []byte(secret)) {
			t.Errorf("the export holds %s", secret)
		}
	}
	// Who may not read everything does not take everything away.
	a.setPolicy(t, tenants.ReadsOwn, tenants.ReadsOwn, tenants.ReadsNone)
	a.send(t, http.MethodGet, "/export", "").want(t, http.StatusForbidden)
}

// S31
func TestAWorkspaceIsDeletedByItsOwnerWithNameAndPassword(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a, b := p.tenant(t, "ant"), p.tenant(t, "bee")
	admin := a.colleague(t, tenants.Admin)
	before := p.snapshot(t, b.workspace)
	right := fmt.Sprintf(`{"name":"ant","password":%q}`, password)
	admin.send(t, http.MethodDelete, "/workspace", right).want(t, http.StatusForbidden)
	a.sendWith(t, a.manage, http.MethodDelete, "/workspace", right).want(t, http.StatusForbidden)
	for field, body := range map[string]string{
		"name":     fmt.Sprintf(`{"name":"bee","password":%q}`, password),
		"password": `{"name":"ant","password":"another one"}`,
	} {
		answer := a.send(t, http.MethodDelete, "/workspace", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if answer.field(t) != field {
			t.Errorf("%s: the field is %s", body, answer.field(t))
		}
	}
	a.send(t, http.MethodGet, "/me", "").want(t, http.StatusOK)
	a.send(t, http.MethodDelete, "/workspace", right).want(t, http.StatusAccepted)
	p.forget()
	for _, answer := range []reply{
		a.send(t, http.MethodGet, "/me", ""), admin.send(t, http.MethodGet, "/sessions", ""),
		a.sendWith(t, a.manage, http.MethodGet, "/sessions", ""), a.sendWith(t, a.read, http.MethodGet, "/sessions", ""),
	} {
		answer.want(t, http.StatusUnauthorized)
	}
	if after := p.snapshot(t, b.workspace); after != before {
		t.Errorf("the other workspace has changed:\n%s\nwas:\n%s", after, before)
	}
}
