package render

import "github.com/alecthomas/chroma/v2"

// look is the only style of code. Its colors are custom properties that app.css sets for light and for dark,
// so that both themes have the same rules. A test generates static/css/code.css from it and compares the two.
var look = map[chroma.TokenType]string{
	chroma.Keyword:           "color: var(--verdigris)",
	chroma.KeywordConstant:   "color: var(--ochre)",
	chroma.NameAttribute:     "color: var(--lapis)",
	chroma.NameBuiltin:       "color: var(--lapis)",
	chroma.NameClass:         "color: var(--lapis)",
	chroma.NameDecorator:     "color: var(--ochre)",
	chroma.NameException:     "color: var(--minium)",
	chroma.NameFunction:      "color: var(--lapis)",
	chroma.NameTag:           "color: var(--verdigris)",
	chroma.NameVariable:      "color: var(--ink-2)",
	chroma.LiteralString:     "color: var(--ochre)",
	chroma.LiteralNumber:     "color: var(--lapis)",
	chroma.OperatorWord:      "color: var(--verdigris)",
	chroma.Comment:           "color: var(--ink-3); font-style: italic",
	chroma.CommentPreproc:    "color: var(--ink-2)",
	chroma.GenericDeleted:    "color: var(--minium)",
	chroma.GenericInserted:   "color: var(--verdigris)",
	chroma.GenericHeading:    "color: var(--ink-2); font-weight: 600",
	chroma.GenericSubheading: "color: var(--lapis)",
	chroma.GenericError:      "color: var(--minium)",
	chroma.GenericTraceback:  "color: var(--minium)",
	chroma.GenericEmph:       "font-style: italic",
	chroma.GenericStrong:     "font-weight: 600",
}
