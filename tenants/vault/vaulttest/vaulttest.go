// Package vaulttest provides vaults with easily distinguished master keys for tests.
package vaulttest

import (
	"bytes"
	"testing"

	"palimpsest/tenants/vault"
)

// Of returns a vault with master keys that each repeat one letter 32 times. The first one seals.
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
