package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"palimpsest/tenants"
)

const (
	issuer   = "palimpsest"
	audience = "palimpsest-dashboard"

	pendingAudience = "palimpsest-code"
)

// tokens writes and parses the tokens of logins: JWTs (RFC 7519) signed with HMAC-SHA256 and the login's id.
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

// login returns the user and the login of a token, or tenants.ErrLoginEnded for an invalid token.
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

// pendingClaims are the claims of a token for a login that waits for its code. They name the person whose
// password was right.
type pendingClaims struct {
	jwt.RegisteredClaims

	Email    string `json:"email"`
	Password string `json:"pwd"` // fingerprint of its hash: the token ends with the password

	SignOn tenants.WorkspaceID `json:"sso,omitzero"` // the workspace whose single sign-on stood in for the password

	user uuid.UUID
}

func (t tokens) issuePending(user tenants.User, password string, signOn tenants.WorkspaceID) (string, error) {
	now := t.now()
	claims := pendingClaims{Email: user.Email, Password: password, SignOn: signOn, RegisteredClaims: jwt.RegisteredClaims{
		Subject: user.ID.String(), Issuer: issuer, Audience: jwt.ClaimStrings{pendingAudience},
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(tenants.PendingAge)),
	}}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(t.keys[0])
	if err != nil {
		return "", fmt.Errorf("sign pending login: %w", err)
	}
	return signed, nil
}

// pending returns the claims of a token from issuePending, or tenants.ErrLoginEnded.
func (t tokens) pending(token string) (pendingClaims, error) {
	for _, key := range t.keys {
		var claims pendingClaims
		_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return key, nil },
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
			jwt.WithAudience(pendingAudience), jwt.WithIssuer(issuer), jwt.WithTimeFunc(t.now))
		if err != nil {
			continue
		}
		if claims.user, err = uuid.Parse(claims.Subject); err == nil {
			return claims, nil
		}
	}
	return pendingClaims{}, tenants.ErrLoginEnded
}

// fingerprint returns an identifier of a password's hash that does not reveal the hash.
func fingerprint(passwordHash string) string {
	sum := sha256.Sum256([]byte("palimpsest fingerprint " + passwordHash))
	return hex.EncodeToString(sum[:16])
}
