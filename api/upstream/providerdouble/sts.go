package providerdouble

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// STS is the sign-in service of AWS with one role. It is an http.Handler, and safe for concurrent use.
type STS struct {
	Region, Role, ExternalID string

	Access BedrockAccess // that may assume the role
	Gives  BedrockAccess // the role's temporary access key
	Now    func() time.Time

	Asked atomic.Int64
}

// ServeHTTP answers like AWS.
func (s *STS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Asked.Add(1)
	body, _ := io.ReadAll(io.LimitReader(r.Body, MaxBody))
	form, _ := url.ParseQuery(string(body))
	w.Header().Set("Content-Type", "text/xml")
	refuse := func(code string) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code><Message>Refused.</Message></Error></ErrorResponse>`, code)
	}
	switch {
	case awsAccount{[]BedrockAccess{s.Access}, s.Region, "sts", s.Now}.verify(r, body) != nil:
		refuse("SignatureDoesNotMatch")
	case form.Get("Action") != "AssumeRole" || form.Get("Version") != "2011-06-15" || form.Get("RoleSessionName") == "":
		refuse("ValidationError")
	case form.Get("RoleArn") != s.Role || form.Get("ExternalId") != s.ExternalID:
		refuse("AccessDenied")
	default:
		_, _ = fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><AssumedRoleUser><Arn>%s</Arn></AssumedRoleUser>`+
			`<Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
			s.Role, s.Gives.ID, s.Gives.Secret, s.Gives.Token, s.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}
}
