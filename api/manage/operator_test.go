package manage_test

import (
	"net/http"
	"strings"
	"testing"
)

// S3: what operators do is there for the login of one, and for no one else: neither
// for owners of workspaces, nor for API keys, the operator's own among them.
func TestOnlyOperatorsOperate(t *testing.T) {
	t.Parallel()
	p := setup(t)
	operator, other := p.tenant(t, "ant"), p.tenant(t, "zebra") // the first person operates
	below := "/operator/workspaces/" + other.workspace.String()
	const why = `{"reason":"sends spam"}`

	for _, call := range [][3]string{
		{http.MethodGet, "/operator/workspaces", ""}, {http.MethodPost, below + "/suspend", why}, {http.MethodPost, below + "/resume", why},
	} {
		for who, answer := range map[string]reply{
			"an owner": other.send(t, call[0], call[1], call[2]), "a key": other.sendWith(t, other.manage, call[0], call[1], call[2]),
			"the operator's key": operator.sendWith(t, operator.manage, call[0], call[1], call[2]),
		} {
			if answer.status != http.StatusNotFound || strings.Contains(string(answer.body), "ant") && who != "the operator's key" {
				t.Errorf("%s as %s: status %d: %s", answer.request, who, answer.status, answer.body)
			}
		}
		if answer := operator.sendWith(t, "", call[0], call[1], call[2]); answer.status != http.StatusUnauthorized {
			t.Errorf("%s without a login: status %d", answer.request, answer.status)
		}
	}

	if answer := operator.send(t, http.MethodPost, below+"/suspend", `{"reason":" "}`); answer.status != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: status %d: %s", answer.status, answer.body)
	}
	if answer := operator.send(t, http.MethodPost, below+"/suspend", why); answer.status != http.StatusOK || !strings.Contains(string(answer.body), "sends spam") {
		t.Errorf("suspend: status %d: %s", answer.status, answer.body)
	}
	p.keys.Changed(other.workspace.String()) // as the notifications do; after Forget, a slow database would leave the keys as they were
	p.people.Forget()
	for name, secret := range map[string]string{"manage": other.manage, "read": other.read} {
		if answer := other.sendWith(t, secret, http.MethodGet, "/usage", ""); answer.status != http.StatusForbidden || !strings.Contains(string(answer.body), "suspended") {
			t.Errorf("key that may %s of a suspended workspace: status %d: %s", name, answer.status, answer.body)
		}
	}
	if answer := other.send(t, http.MethodGet, "/usage", ""); answer.status != http.StatusForbidden || !strings.Contains(string(answer.body), "suspended") {
		t.Errorf("login in a suspended workspace: status %d: %s", answer.status, answer.body)
	}
	if answer := operator.send(t, http.MethodGet, "/operator/workspaces?limit=1&q=zebra", ""); answer.status != http.StatusOK || !strings.Contains(string(answer.body), "suspended_at") {
		t.Errorf("list: status %d: %s", answer.status, answer.body)
	}
	if answer := operator.send(t, http.MethodPost, below+"/resume", why); answer.status != http.StatusOK {
		t.Errorf("resume: status %d: %s", answer.status, answer.body)
	}
	p.keys.Changed(other.workspace.String())
	if answer := other.sendWith(t, other.read, http.MethodGet, "/usage", ""); answer.status != http.StatusOK {
		t.Errorf("resumed: status %d: %s", answer.status, answer.body)
	}
}

// No operator reads what was said in a workspace that is not theirs through any route of
// the API, and of its figures nothing holds a title, a key or what was said.
func TestNoOperatorReadsWhatWasSaid(t *testing.T) {
	t.Parallel()
	p := setup(t)
	operator, other := p.tenant(t, "ant"), p.tenant(t, "zebra") // the first person operates
	said := string(other.send(t, http.MethodGet, "/sessions/"+other.session.String()+"/archive/0", "").body)
	if !strings.Contains(said, "zebra") {
		t.Fatalf("nothing was said that could be read: %s", said)
	}
	secrets := []string{other.session.String(), other.request.String(), other.keyID, other.providerKey, other.pattern, other.viewer, "key of zebra", "pnpm in zebra", canaryKey, said}
	for _, route := range routes(p.echo) {
		try := reaches()[route]
		if try.public || try.ends {
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		if path = strings.Replace(path, ":id", other.workspace.String(), 1); try.path != nil {
			path = try.path(other)
		}
		body := try.body
		if try.runs && method == http.MethodPost {
			body = `{"reason":"why"}`
		}
		answer := operator.send(t, method, path, body)
		for _, secret := range secrets {
			if strings.Contains(string(answer.body), secret) {
				t.Errorf("%s holds %s: %s", answer.request, secret, answer.body)
			}
		}
	}
	listed := operator.send(t, http.MethodGet, "/operator/workspaces?q=zebra", "")
	if !strings.Contains(string(listed.body), other.workspace.String()) || !strings.Contains(string(listed.body), `"exchanges":`) {
		t.Errorf("the operator's list: %s", listed.body)
	}
}
