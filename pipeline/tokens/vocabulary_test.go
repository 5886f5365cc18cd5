package tokens_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

var update = flag.Bool("update", false, "write o200k_base.zst")

// The embedded vocabulary has the tokens that tiktoken publishes, with their ranks.
func TestVocabularyIsThatOfTiktoken(t *testing.T) {
	t.Parallel()
	published, err := assets.Assets.ReadFile("o200k_base.tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	var lengths, tokens []byte
	for line := range bytes.Lines(published) {
		encoded, rank, _ := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		token, err := base64.StdEncoding.DecodeString(string(encoded))
		if err != nil || string(rank) != strconv.Itoa(len(lengths)) || len(token) == 0 || len(token) > 255 {
			t.Fatalf("line %q after %d tokens: %v", line, len(lengths), err)
		}
		lengths, tokens = append(lengths, byte(len(token))), append(tokens, token...)
	}
	want := slices.Concat(lengths, tokens)
	if *update {
		encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("o200k_base.zst", encoder.EncodeAll(want, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := os.ReadFile("o200k_base.zst")
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	if got, err := decoder.DecodeAll(packed, nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d, %v; run: go test ./pipeline/tokens -run TestVocabularyIsThatOfTiktoken -update", len(got), len(want), err)
	}
}
