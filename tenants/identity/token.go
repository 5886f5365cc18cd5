package identity

import (
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"palimpsest/tenants"
)

const (
	issuer   = "palimpsest"
	audience = "palimpsest-dashboard"
)

// tokens writes and reads the tokens of logins: JWTs (RFC 7519) signed with
// HMAC-SHA256 whose id is the login's.
type tokens struct {
	keys [][]byte // the first signs, all verify
	now  func() time.Time
}

func (t tokens) issue(login tenants.Login) (string, error) {
	claims := jwt.RegisteredClaims{
		ID: login.ID.String(), Subject: login.UserID.String(), Issuer: issuer, Audience: jwt.ClaimStrings{audience},
		IssuedAt: jwt.NewNumericDate(login.CreatedAt), ExpiresAt: jwt.NewNumericDate(login.ExpiresAt),
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(t.keys[0])
	if err != nil {
		return "", fmt.Errorf("sign login: %w", err)
	}
	return signed, nil
}

// login returns the user and the login that a token is for, or
// tenants.ErrLoginEnded for every token that is not valid now.
func (t tokens) login(token string) (user, login uuid.UUID, err error) {
	for _, key := range t.keys {
		var claims jwt.RegisteredClaims
		_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return key, nil },
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
			jwt.WithAudience(audience), jwt.WithIssuer(issuer), jwt.WithTimeFunc(t.now))
		if err != nil {
			continue
		}
		user, userErr := uuid.Parse(claims.Subject)
		login, loginErr := uuid.Parse(claims.ID)
		if userErr != nil || loginErr != nil {
			return uuid.Nil, uuid.Nil, tenants.ErrLoginEnded
		}
		return user, login, nil
	}
	return uuid.Nil, uuid.Nil, tenants.ErrLoginEnded
}
