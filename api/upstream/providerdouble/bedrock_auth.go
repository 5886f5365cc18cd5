package providerdouble

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

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
