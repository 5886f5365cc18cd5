package upstream

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"palimpsest/tenants"
)

// roleLife is how long a temporary access key of a role lasts. Roles can't allow less than an hour.
const roleLife = time.Hour

// assumesRole reports whether a target's access key of AWS only serves to assume a role.
func assumesRole(target Target) bool {
	return target.Auth == tenants.AuthSigV4 && strings.Contains(target.Key, ":arn:")
}

// roleAnswer is an answer of AWS's sign-in service
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html).
type roleAnswer struct {
	ID      string `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
	Secret  string `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
	Token   string `xml:"AssumeRoleResult>Credentials>SessionToken"`
	Refusal string `xml:"Error>Code"`
}

// assume returns a temporary access key of a target's role. The request is signed with the target's own key, so that
// a role is only assumed by those whom its owner trusts.
func (t *tokens) assume(ctx context.Context, target Target) (token, error) {
	key, err := tenants.ParseAWSKey(target.Key)
	if err != nil {
		return token{}, err
	}
	form := url.Values{
		"Action": {"AssumeRole"}, "Version": {"2011-06-15"}, "RoleArn": {key.Role}, "RoleSessionName": {"palimpsest"},
		"DurationSeconds": {strconv.Itoa(int(roleLife / time.Second))},
	}
	if key.ExternalID != "" {
		form.Set("ExternalId", key.ExternalID)
	}
	body, begin := form.Encode(), t.now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.stsAt(target.SignsFor)+"/", strings.NewReader(body))
	if err != nil {
		return token{}, fmt.Errorf("assume role: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	signer := Target{Auth: tenants.AuthSigV4, Key: key.ID + ":" + key.Secret, Service: "sts", SignsFor: target.SignsFor}
	if err := sign(ctx, request, []byte(body), signer, begin); err != nil {
		return token{}, err
	}
	response, err := t.http.Do(request)
	if err != nil {
		return token{}, fmt.Errorf("%w: its sign-in service does not answer", ErrUnreachable)
	}
	defer func() { _ = response.Body.Close() }()
	var answer roleAnswer
	err = xml.NewDecoder(io.LimitReader(response.Body, maxShort)).Decode(&answer)
	switch {
	case response.StatusCode >= http.StatusBadRequest && response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusTooManyRequests:
		return token{}, fmt.Errorf("%w: %s", ErrSignIn, cmp.Or(lettersOf(answer.Refusal), response.Status))
	case err != nil || response.StatusCode != http.StatusOK || answer.ID == "" || answer.Secret == "" || answer.Token == "":
		return token{}, fmt.Errorf("%w: its sign-in service gives no access token", ErrUnreachable)
	}
	return lasting(answer.ID+":"+answer.Secret+":"+answer.Token, begin, roleLife), nil
}

// stsAt returns the address of AWS's sign-in service in a region.
func (t *tokens) stsAt(region string) string {
	end := ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		end = ".amazonaws.com.cn"
	}
	return cmp.Or(t.sts, "https://sts."+region+end)
}

// lettersOf returns a code of AWS, such as AccessDenied; "" for anything else.
func lettersOf(code string) string {
	const longest = 60
	if len(code) > longest || strings.ContainsFunc(code, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) {
		return ""
	}
	return code
}
