package upstream

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/tenants"
)

const (
	roleKey = "AKIAIOSFODNN7EXAMPLE:secret"
	roleARN = "arn:aws:iam::123456789012:role/team/bedrock"
)

// The provider key's own secret only goes into the signature of the request for the role.
func TestRoleIsAssumedWithTheWorkspacesOwnKey(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	gives := providerdouble.BedrockAccess{ID: "ASIAIOSFODNN7EXAMPLE", Secret: "temporary", Token: "dG9rZW4="}
	service := &providerdouble.STS{
		Region: "us-east-1", Role: roleARN, ExternalID: "northbeam:1", Access: providerdouble.BedrockAccess{ID: "AKIAIOSFODNN7EXAMPLE", Secret: "secret"}, Gives: gives, Now: now,
	}
	sts := httptest.NewServer(service)
	t.Cleanup(sts.Close)
	double := providerdouble.NewBedrock(providerdouble.BedrockConfig{Region: "us-east-1", Access: []providerdouble.BedrockAccess{gives}})
	address, stop, err := double.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client := New(true)
	client.tokens.now, client.tokens.sts = now, sts.URL
	t.Cleanup(func() {
		client.Close()
		stop()
	})
	target := Target{
		Provider: tenants.ProviderAnthropic, Platform: tenants.PlatformBedrock, BaseURL: address, SignsFor: "us-east-1", Service: "bedrock", Auth: tenants.AuthSigV4,
	}
	send := func(key string) (int, error) {
		t.Helper()
		target.Key = key
		response, err := client.Send(t.Context(), Request{
			Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{},
			Body: []byte(`{"model":"us.anthropic.claude-sonnet-4-5-20250929-v1:0","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`),
		}, target)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	for range 2 {
		if got, err := send(roleKey + ":" + roleARN + ":northbeam:1"); got != http.StatusOK {
			t.Fatalf("%d, %v", got, err)
		}
	}
	for _, got := range double.Models.Requests() {
		if got.Header.Get("X-Amz-Security-Token") != gives.Token || !strings.Contains(got.Header.Get("Authorization"), gives.ID) {
			t.Errorf("signed with %v", got.Header)
		}
	}
	if asked := service.Asked.Load(); asked != 1 {
		t.Errorf("the role was assumed %d times", asked)
	}
	passed.Add(int64(time.Hour + time.Minute))
	if got, err := send(roleKey + ":" + roleARN + ":northbeam:1"); got != http.StatusOK || service.Asked.Load() != 2 {
		t.Errorf("after the end of its access key: %d, %v, assumed %d times", got, err, service.Asked.Load())
	}
	for name, key := range map[string]string{
		"another external id": roleKey + ":" + roleARN + ":x", "no external id": roleKey + ":" + roleARN, "another role": roleKey + ":arn:aws:iam::123456789012:role/admin:northbeam:1",
		"another secret": "AKIAIOSFODNN7EXAMPLE:guess:" + roleARN + ":northbeam:1",
	} {
		if _, err := send(key); !errors.Is(err, ErrSignIn) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	sts.Close()
	if _, err := send(roleKey + ":" + roleARN + ":other"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without a sign-in service: %v", err)
	}
}

func TestSignInServiceOfAWSIsTheRegions(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{"us-east-1": "https://sts.us-east-1.amazonaws.com", "cn-north-1": "https://sts.cn-north-1.amazonaws.com.cn"} {
		if got := (&tokens{}).stsAt(region); got != want {
			t.Errorf("%s: %s", region, got)
		}
	}
}
