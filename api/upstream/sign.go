package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"palimpsest/tenants"
)

// isSigning reports whether a header belongs to a signature of AWS. A client's own signature is for another
// host.
func isSigning(name string) bool { return strings.HasPrefix(name, "X-Amz-") }

// sign signs a complete request whose target's key is an access key of AWS (Signature Version 4). Other requests
// stay as they are. Each request has a signer of its own, because a signer remembers the secret of an access
// key by its id alone, and two workspaces may store the same id with different secrets.
func sign(ctx context.Context, request *http.Request, body []byte, target Target, now time.Time) error {
	if target.Auth != tenants.AuthSigV4 || target.Own != nil {
		return nil
	}
	key, err := tenants.ParseAWSKey(target.Key)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret, SessionToken: key.Token}
	if err := v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), target.Service, target.SignsFor, now); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	return nil
}

// secretsOf returns the parts of a target's key that must not appear in an answer.
func secretsOf(target Target) []string {
	read, err := tenants.ReadSecret(target.Auth, target.Key)
	if err != nil || target.Own != nil {
		return []string{target.Key}
	}
	return read.Hidden
}
