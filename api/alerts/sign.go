package alerts

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sign adds the signature headers of Standard Webhooks 1.0.0, by which a receiver verifies the sender and the
// time of a webhook.
func sign(header http.Header, secret, id string, at time.Time, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return fmt.Errorf("secret of webhook: %w", err)
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	sum := hmac.New(sha256.New, key)
	fmt.Fprintf(sum, "%s.%s.%s", id, timestamp, body)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	return nil
}
