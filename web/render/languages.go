package render

import (
	"archive/zip"
	"bytes"
	_ "embed" // the archive
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// languageFiles are the rules of chroma's languages. Its package lexers embeds them too, but reads them
// whenever a program starts, which costs every command some 25 ms. TestLanguagesAreThoseOfChroma writes the
// archive.
//
//go:embed languages.zip
var languageFiles []byte

// languages returns all languages.
var languages = sync.OnceValue(func() *chroma.LexerRegistry {
	files, err := zip.NewReader(bytes.NewReader(languageFiles), int64(len(languageFiles)))
	if err != nil {
		panic("render: " + err.Error()) // the archive is part of this build
	}
	all := chroma.NewLexerRegistry()
	for _, file := range files.File {
		lexer, err := chroma.NewXMLLexer(files, file.Name)
		if err != nil {
			panic("render: " + err.Error())
		}
		all.Register(lexer)
	}
	return all
})
