package browsertest_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVendoredTestDataHasItsNotedSums(t *testing.T) {
	t.Parallel()

	sums, err := os.Open(filepath.Join("testdata", "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	defer sums.Close()
	checked := 0
	for lines := bufio.NewScanner(sums); lines.Scan(); checked++ {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		body, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s does not have its noted sum", name)
		}
	}
	if checked != 2 {
		t.Errorf("%d files are noted", checked)
	}
}
