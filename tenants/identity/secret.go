package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"

	"palimpsest/tenants"
)

// An API key is "plm_", an environment tag, 43 base62 digits of 32 random bytes and 6 of the CRC-32 of all
// before them, so that scanners and typo checks need no lookup.
const (
	keyPrefix      = tenants.KeyStart
	keyTag         = "live_"
	secretBytes    = 32
	secretDigits   = 43 // of base62 for secretBytes
	checksumDigits = 6
	shownDigits    = 4 // of the secret part, in a key's prefix and suffix
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// GenerateKey returns a new API key's secret and its displayable parts.
func GenerateKey() (secret, prefix, suffix string) {
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails
	secret = keyPrefix + keyTag + encode(new(big.Int).SetBytes(random), secretDigits)
	secret += checksum(secret)
	shown := len(keyPrefix + keyTag)
	return secret, secret[:shown+shownDigits], secret[len(secret)-shownDigits:]
}

// CheckKey returns tenants.ErrKeyMalformed if a secret does not have the form of an API key.
func CheckKey(secret string) error {
	if !strings.HasPrefix(secret, keyPrefix) || len(secret) != len(keyPrefix+keyTag)+secretDigits+checksumDigits {
		return tenants.ErrKeyMalformed
	}
	body, sum := secret[:len(secret)-checksumDigits], secret[len(secret)-checksumDigits:]
	if checksum(body) != sum {
		return tenants.ErrKeyMalformed
	}
	return nil
}

// HashKey returns the stored hash of an API key. One HMAC-SHA256 under a key outside the database is enough
// because an API key has 256 random bits.
func HashKey(pepper []byte, secret string) []byte {
	mac := hmac.New(sha256.New, pepper)
	mac.Write([]byte(secret))
	return mac.Sum(nil)
}

func checksum(body string) string {
	return encode(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), checksumDigits)
}

// encode writes a number in base62, padded to a number of digits.
func encode(number *big.Int, digits int) string {
	base, digit := big.NewInt(int64(len(base62))), new(big.Int)
	out := make([]byte, digits)
	for i := digits - 1; i >= 0; i-- {
		number.DivMod(number, base, digit)
		out[i] = base62[digit.Int64()]
	}
	return string(out)
}
