package identity

import (
	"errors"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"palimpsest/tenants"
)

// S9: a token is good for one purpose. One that says all that a pending log-in says is
// refused unless it was issued as one, and one of a login likewise.
func TestTokensAreGoodForTheirAudienceOnly(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	writer := tokens{keys: [][]byte{[]byte("a signing key of thirty-two byte")}, now: func() time.Time { return now }}
	sign := func(issuer string, audiences jwt.ClaimStrings, expires *jwt.NumericDate, method jwt.SigningMethod, key any) string {
		signed, err := jwt.NewWithClaims(method, pendingClaims{Email: "ada@example.com", Password: "print", RegisteredClaims: jwt.RegisteredClaims{
			ID: uuid.NewString(), Subject: uuid.NewString(), Issuer: issuer, Audience: audiences, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: expires,
		}}).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	soon, key := jwt.NewNumericDate(now.Add(time.Minute)), any(writer.keys[0])
	for name, test := range map[string]struct {
		token          string
		pending, login bool
	}{
		"a pending log-in":    {sign(issuer, jwt.ClaimStrings{pendingAudience}, soon, jwt.SigningMethodHS256, key), true, false},
		"a login":             {sign(issuer, jwt.ClaimStrings{audience}, soon, jwt.SigningMethodHS256, key), false, true},
		"no audience":         {sign(issuer, nil, soon, jwt.SigningMethodHS256, key), false, false},
		"another audience":    {sign(issuer, jwt.ClaimStrings{"palimpsest-other"}, soon, jwt.SigningMethodHS256, key), false, false},
		"another issuer":      {sign("elsewhere", jwt.ClaimStrings{pendingAudience, audience}, soon, jwt.SigningMethodHS256, key), false, false},
		"no issuer":           {sign("", jwt.ClaimStrings{pendingAudience, audience}, soon, jwt.SigningMethodHS256, key), false, false},
		"no expiry":           {sign(issuer, jwt.ClaimStrings{pendingAudience, audience}, nil, jwt.SigningMethodHS256, key), false, false},
		"expired":             {sign(issuer, jwt.ClaimStrings{pendingAudience, audience}, jwt.NewNumericDate(now), jwt.SigningMethodHS256, key), false, false},
		"another signing key": {sign(issuer, jwt.ClaimStrings{pendingAudience, audience}, soon, jwt.SigningMethodHS256, []byte("another signing key of 32 bytes.")), false, false},
		"another method":      {sign(issuer, jwt.ClaimStrings{pendingAudience, audience}, soon, jwt.SigningMethodHS512, key), false, false},
		"no signature":        {sign(issuer, jwt.ClaimStrings{pendingAudience, audience}, soon, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType), false, false},
	} {
		if _, err := writer.pending(test.token); (err == nil) != test.pending || err != nil && !errors.Is(err, tenants.ErrLoginEnded) {
			t.Errorf("%s as a pending log-in: %v", name, err)
		}
		if _, _, err := writer.login(test.token); (err == nil) != test.login || err != nil && !errors.Is(err, tenants.ErrLoginEnded) {
			t.Errorf("%s as a login: %v", name, err)
		}
	}
}
