package tenants

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"strings"
	"testing"
)

// accountFile returns the file of a service account's key with some members changed.
func accountFile(t *testing.T, change map[string]string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	members := map[string]string{
		"type": "service_account", "project_id": "northbeam", "private_key_id": "0123456789abcdef", "client_email": "a@northbeam.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "universe_domain": "googleapis.com",
	}
	maps.Copy(members, change)
	file, err := json.MarshalIndent(members, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// Only keys of service accounts are accepted. Other credentials of Google name files, programs or addresses for the
// machine to use.
func TestOnlyServiceAccountsAreAccepted(t *testing.T) {
	t.Parallel()
	read, err := ReadSecret(AuthGoogle, accountFile(t, nil))
	if err != nil || read.Shown != "0123456789abcdef" || strings.Contains(read.Stored, "universe_domain") || !strings.Contains(read.Hidden[0], "PRIVATE KEY") {
		t.Fatalf("%v, shown %q", err, read.Shown)
	}
	if again, err := ReadSecret(AuthGoogle, read.Stored); err != nil || again.Stored != read.Stored {
		t.Errorf("the stored form is read as %+v, %v", again, err)
	}
	for _, change := range []map[string]string{
		{"type": "external_account"}, {"type": "authorized_user"}, {"type": "impersonated_service_account"}, {"type": ""}, {"private_key": "none"},
		{"client_email": "nobody"}, {"project_id": ""}, {"private_key_id": "1"}, {"token_uri": "https://a@example.com/token"}, {"token_uri": "/token"},
	} {
		if _, err := ReadSecret(AuthGoogle, accountFile(t, change)); err == nil {
			t.Errorf("%v is accepted", change)
		}
	}
	if _, err := ReadSecret(AuthGoogle, "AIzaSyApiKey"); err == nil {
		t.Error("an API key is accepted")
	}
}

func TestEntraAppHasThreeParts(t *testing.T) {
	t.Parallel()
	want := EntraApp{Tenant: "contoso.onmicrosoft.com", Client: "0000-1111", Secret: "a~b:c.d"}
	if got, err := ParseEntraApp("contoso.onmicrosoft.com:0000-1111:a~b:c.d"); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "tenant:client", "tenant:client:", "../x:client:secret", "te/nant:client:secret", "tenant:cl?ient:secret", "a..b:client:secret"} {
		if _, err := ParseEntraApp(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// A location becomes a part of a host's name, so it can't hold anything else.
func TestOnlyWellFormedLocationsAreLocations(t *testing.T) {
	t.Parallel()
	for location, host := range map[string]string{
		"global": "aiplatform.googleapis.com", "eu": "aiplatform.eu.rep.googleapis.com", "us-east5": "us-east5-aiplatform.googleapis.com", "asia-southeast1": "asia-southeast1-aiplatform.googleapis.com",
	} {
		if !IsGoogleLocation(location) || GoogleHost(location) != host || GoogleLocationOf("https://"+host+"/v1/projects/p/locations/"+location) != location {
			t.Errorf("%q: %s", location, GoogleHost(location))
		}
	}
	for _, location := range []string{"", "us-east", "us-east-1", "evil.example/-a1", "us-east5.evil.example", "US-east5", "-a1", "a-1", "us-east5/x", "@a-b1"} {
		if IsGoogleLocation(location) {
			t.Errorf("%q is accepted", location)
		}
	}
	if got := AWSRegionOf("https://aws-external-anthropic.us-west-2.api.aws"); got != "us-west-2" {
		t.Errorf("region %q", got)
	}
}
