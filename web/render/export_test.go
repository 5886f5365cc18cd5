package render

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/alecthomas/chroma/v2"
)

// Sheet returns what static/css/code.css is to be.
func Sheet() []byte {
	var out bytes.Buffer
	out.WriteString("/* How code is colored: written by go test ./web/render -run StyleSheet -update, from web/render/style.go. */\n@layer pages {\n")
	for _, kind := range slices.Sorted(maps.Keys(look)) {
		fmt.Fprintf(&out, "  .chroma .%s { %s; }\n", chroma.StandardTypes[kind], look[kind])
	}
	out.WriteString("}\n")
	return out.Bytes()
}

// LexerOf names the language that a file is read as; empty if unknown.
func LexerOf(name string) string {
	lexer := lexerOf(name)
	if lexer == nil {
		return ""
	}
	return lexer.Config().Name
}
