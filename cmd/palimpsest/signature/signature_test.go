package signature_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"palimpsest/cmd/palimpsest/signature"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The files in testdata were signed by another implementation, aead.dev/minisign.
func TestSignatureIsThatOfTheFileAndTheKey(t *testing.T) {
	t.Parallel()
	key, err := signature.ParseKey(read(t, "minisign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	file, signed := read(t, "file.txt"), read(t, "file.txt.minisig")
	for _, text := range []string{signed, strings.ReplaceAll(signed, "\n", "\r\n")} {
		if comment, err := key.Verify(strings.NewReader(file), text); err != nil || comment != "palimpsest 1.2.3, file file.txt" {
			t.Errorf("%q, %v", comment, err)
		}
	}
	lines := strings.Split(signed, "\n")
	for name, c := range map[string]struct {
		file, signed string
		want         error
	}{
		"changed file":            {file + " ", signed, signature.ErrChanged},
		"changed trusted comment": {file, strings.Replace(signed, "1.2.3", "9.9.9", 1), signature.ErrChanged},
		"no trusted comment":      {file, strings.Join(lines[:2], "\n"), signature.ErrSignature},
		"other key":               {file, strings.Replace(signed, "RUQ2jB4Z", "RUQ2jB4a", 1), signature.ErrOtherKey},
		"file that is not hashed": {file, strings.Replace(signed, "RUQ2", "RWQ2", 1), signature.ErrSignature},
		"empty":                   {file, "", signature.ErrSignature},
		"no base64":               {file, strings.Replace(signed, "RUQ2", "!!!!", 1), signature.ErrSignature},
	} {
		if _, err := key.Verify(strings.NewReader(c.file), c.signed); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestWrongKeysAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "RWQ2", read(t, "file.txt.minisig")} {
		if _, err := signature.ParseKey(text); !errors.Is(err, signature.ErrKey) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
