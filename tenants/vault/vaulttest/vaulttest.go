// Package vaulttest gives tests vaults on master keys that are easy to tell apart.
package vaulttest

import (
	"bytes"
	"testing"

	"palimpsest/tenants/vault"
)

// Of returns a vault on master keys that repeat one letter each, 32 times. The first one seals.
func Of(t testing.TB, letters ...string) *vault.Vault {
	t.Helper()
	secrets := make([][]byte, len(letters))
	for i, letter := range letters {
		secrets[i] = bytes.Repeat([]byte(letter), 32)
	}
	safe, err := vault.New(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return safe
}
