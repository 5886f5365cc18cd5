package providerdouble

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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
