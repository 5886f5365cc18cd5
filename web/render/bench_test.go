package render_test

import (
	"strings"
	"testing"

	"palimpsest/web/render"
)

func BenchmarkText(b *testing.B) {
	prose := strings.Repeat("# Title\n\nSome *words* and `code`, a [link](https://a.example/x).\n\n- one\n- two\n\n", 40)
	source := strings.Repeat("func add(a, b int) int { return a + b } // sum\n", 80)
	b.Run("prose", func(b *testing.B) {
		for b.Loop() {
			render.HTML(render.Prose, "", prose)
		}
	})
	b.Run("go", func(b *testing.B) {
		for b.Loop() {
			render.HTML(render.Code, "main.go", source)
		}
	})
	// The most that is rendered of one text, and one that is made to be slow.
	most := strings.Repeat(prose, 64<<10/len(prose))
	b.Run("prose of 64 KB", func(b *testing.B) {
		for b.Loop() {
			render.HTML(render.Prose, "", most)
		}
	})
	b.Run("brackets of 12 KB", func(b *testing.B) {
		brackets := strings.Repeat("![[]()", 12<<10/6)
		for b.Loop() {
			render.HTML(render.Prose, "", brackets)
		}
	})
	b.Run("visible", func(b *testing.B) {
		for b.Loop() {
			render.Visible(source)
		}
	})
}
