package providerdouble

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// serviceEmail and serviceKeyID identify the service account of a Cloud.
const (
	serviceEmail = "palimpsest@double.iam.gserviceaccount.com"
	serviceKeyID = "0123456789abcdef0123456789abcdef01234567"
	googleScope  = "https://www.googleapis.com/auth/cloud-platform"
	azureScope   = "https://cognitiveservices.azure.com/.default"
)

// ServiceAccount returns the file of the service account's key, for a Cloud at a URL.
func (c *Cloud) ServiceAccount(at string) string {
	der, err := x509.MarshalPKCS8PrivateKey(c.signer)
	if err != nil {
		panic("providerdouble: " + err.Error())
	}
	file, err := json.MarshalIndent(map[string]string{
		"type": "service_account", "project_id": c.config.Project, "private_key_id": serviceKeyID, "client_email": serviceEmail, "token_uri": at + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"auth_uri":    "https://accounts.google.com/o/oauth2/auth", "universe_domain": "googleapis.com",
	}, "", "  ")
	if err != nil {
		panic("providerdouble: " + err.Error())
	}
	return string(file)
}

// giveToken answers a request for an access token.
func (c *Cloud) giveToken(asked *cloudRequest) {
	c.mu.Lock()
	c.asked++
	isDown := c.isDown
	c.mu.Unlock()
	form, err := url.ParseQuery(string(asked.body))
	code := "invalid_client"
	isGiven := err == nil && form.Get("client_id") == c.config.App && form.Get("client_secret") == c.config.AppSecret && form.Get("scope") == azureScope &&
		form.Get("grant_type") == "client_credentials" && c.config.App != ""
	if asked.URL.Path == "/token" {
		code = "invalid_grant"
		isGiven = form.Get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer" && c.isAssertion(form.Get("assertion"), asked.Host)
	}
	asked.out.Header().Set("Content-Type", "application/json")
	switch {
	case isDown:
		asked.out.WriteHeader(http.StatusServiceUnavailable)
		writeBody(asked.out, map[string]string{"error": "temporarily_unavailable"})
	case !isGiven:
		asked.out.WriteHeader(http.StatusBadRequest)
		writeBody(asked.out, map[string]string{"error": code, "error_description": "The credentials " + form.Get("client_id") + " are not valid."})
	default:
		secret := "ya29." + c.Models.name("", 40)
		c.mu.Lock()
		c.tokens[secret] = c.config.Now().Add(c.config.Life)
		c.mu.Unlock()
		writeBody(asked.out, map[string]any{"access_token": secret, "token_type": "Bearer", "expires_in": int(c.config.Life / time.Second)})
	}
}

// isAssertion reports whether a text is a valid assertion of the service account.
func (c *Cloud) isAssertion(text, host string) bool {
	claims := struct {
		jwt.RegisteredClaims

		Scope string `json:"scope"`
	}{}
	parsed, err := jwt.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) { return &c.signer.PublicKey, nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer(serviceEmail), jwt.WithAudience("http://"+host+"/token"), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithTimeFunc(c.config.Now), jwt.WithLeeway(time.Minute))
	return err == nil && parsed.Header["kid"] == serviceKeyID && claims.Scope == googleScope && claims.ExpiresAt.Sub(claims.IssuedAt.Time) <= time.Hour+time.Minute
}

// isTokenValid reports whether a request has a valid access token.
func (c *Cloud) isTokenValid(header http.Header) bool {
	secret, isBearer := strings.CutPrefix(header.Get("Authorization"), "Bearer ")
	c.mu.Lock()
	defer c.mu.Unlock()
	return isBearer && c.config.Now().Before(c.tokens[secret])
}

// hasToken reports whether a request to Google has a valid access token, and refuses it otherwise.
func (c *Cloud) hasToken(asked *cloudRequest) bool {
	if c.isTokenValid(asked.Header) {
		return true
	}
	asked.out.Header().Set("Www-Authenticate", "Bearer realm="+strconv.Quote("https://accounts.google.com/"))
	asked.refuse(http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.")
	return false
}

// bedrockSkew is how far a signature's time may be from the server's.
const bedrockSkew = 5 * time.Minute

// authenticate checks a request's Bedrock API key or its signature.
func (b *Bedrock) authenticate(r *http.Request, body []byte) *Rejection {
	authorization := r.Header.Get("Authorization")
	if key, isBearer := strings.CutPrefix(authorization, "Bearer "); isBearer {
		if !slices.Contains(b.config.Keys, key) {
			return forbidden("AccessDeniedException", "Authentication failed: Please make sure your API Key is valid.")
		}
		return nil
	}
	return awsAccount{b.config.Access, b.config.Region, "bedrock", b.config.Now}.verify(r, body)
}

// awsAccount verifies signatures of requests to one of its services.
type awsAccount struct {
	access          []BedrockAccess
	region, service string
	now             func() time.Time
}

// verify checks the signature of a request.
func (a awsAccount) verify(r *http.Request, body []byte) *Rejection {
	authorization := r.Header.Get("Authorization")
	signed, isSigned := strings.CutPrefix(authorization, "AWS4-HMAC-SHA256 ")
	if !isSigned {
		return forbidden("MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	fields := map[string]string{}
	for field := range strings.SplitSeq(signed, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	scope := strings.SplitN(fields["Credential"], "/", 2)
	at := slices.IndexFunc(a.access, func(access BedrockAccess) bool { return access.ID == scope[0] })
	if at < 0 || len(scope) < 2 || a.access[at].Token != r.Header.Get("X-Amz-Security-Token") {
		return forbidden("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	access, now := a.access[at], a.now()
	date, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	switch {
	case err != nil:
		return forbidden("IncompleteSignatureException", "Date must be in ISO-8601 'basic format'.")
	case !access.Expires.IsZero() && now.After(access.Expires):
		return forbidden("ExpiredTokenException", "The security token included in the request is expired")
	case date.Before(now.Add(-bedrockSkew)):
		return forbidden("InvalidSignatureException", "Signature expired: "+r.Header.Get("X-Amz-Date")+" is now earlier than "+now.Add(-bedrockSkew).UTC().Format("20060102T150405Z"))
	case date.After(now.Add(bedrockSkew)):
		return forbidden("InvalidSignatureException", "Signature not yet current: "+r.Header.Get("X-Amz-Date"))
	case scope[1] != date.Format("20060102")+"/"+a.region+"/"+a.service+"/aws4_request":
		return forbidden("InvalidSignatureException", "Credential should be scoped to a valid region.")
	case !hmac.Equal([]byte(fields["Signature"]), []byte(signature(r, body, strings.Split(fields["SignedHeaders"], ";"), access.Secret, scope[1]))):
		return forbidden("InvalidSignatureException", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return nil
}

func forbidden(kind, message string) *Rejection {
	return &Rejection{Status: http.StatusForbidden, Type: kind, Message: message}
}

// signature returns the signature of a request (Signature Version 4), or "" if it omits headers that must be signed.
func signature(r *http.Request, body []byte, names []string, secret, scope string) string {
	if !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date") || !slices.IsSorted(names) {
		return ""
	}
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && !slices.Contains(names, name) {
			return ""
		}
	}
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + twiceEscaped(r.URL.EscapedPath()) + "\n" + strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20") + "\n")
	for _, name := range names {
		values := r.Header.Values(name)
		if name == "host" {
			values = []string{r.Host}
		}
		trimmed := make([]string, len(values))
		for i, value := range values {
			trimmed[i] = strings.Join(strings.Fields(value), " ")
		}
		canonical.WriteString(name + ":" + strings.Join(trimmed, ",") + "\n")
	}
	canonical.WriteString("\n" + strings.Join(names, ";") + "\n" + hexSum(body))
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+scope+"\n"+hexSum([]byte(canonical.String()))))
}

// twiceEscaped escapes each segment of an escaped path again, as all services but S3 want it.
func twiceEscaped(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return strings.Join(parts, "/")
}

func mac(key []byte, text string) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(text))
	return sum.Sum(nil)
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

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
