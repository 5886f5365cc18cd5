package search

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/expression"
)

// Wanted is a term that a question asks for.
type Wanted struct {
	Text   string
	Weight float64 // the term's share of the question

	// Written is the term's form in the text if it differs from the term: in lower case, with its accents.
	Written string
}

// Question is a parsed question.
type Question struct {
	Wanted []Wanted // most wanted first

	phrases []string // what to find word by word, in the form of named
	whole   string   // the whole question in that form
}

// MaxWanted bounds the terms of a question.
const MaxWanted = 48

// The weights of a question's term by its kind.
const (
	wantedWord   = 1.0
	wantedName   = 2.0 // a whole identifier
	wantedPart   = 0.3 // a part of an identifier or of a path
	wantedPath   = 3.0 // a whole path that a call names
	wantedRead   = 2.0 // a whole path that a call reads
	wantedFile   = 1.5 // the last element of a path
	wantedPhrase = 6.0 // a whole description
	quotedTimes  = 1.5
)

// maxQuestionBytes is the maximum of a text that is read: its beginning and its end.
const maxQuestionBytes = 8 << 10

// described finds a person's description of a command.
var described = expression.New(`(?i)\b(?:ran|run|executed|used|called|issued|started)\s+(?:a|the|that|some)?\s*(?:command|tool|script|shell command|bash command)s?\s*(?:to|for|that|which|:)+\s*:?\s*([^\n?!]+?)\s*(?:[.?!](?:\s|$)|\n|$)`)

// quoted finds text in quotation marks or backquotes.
var quoted = expression.New("`([^`\n]{2,200})`|\"([^\"\n]{2,200})\"|“([^”\n]{2,200})”|«([^»\n]{2,200})»|'([^'\n]{3,200})'")

// Ask parses a text into a question.
func Ask(text string) Question {
	if len(text) > maxQuestionBytes {
		text = strings.ToValidUTF8(text[:maxQuestionBytes/2], "") + "\n" + strings.ToValidUTF8(text[len(text)-maxQuestionBytes/2:], "")
	}
	written := text
	asked := asking{weights: map[string]float64{}, order: map[string]int{}, written: map[string]string{}}
	if match := described.FindStringSubmatch(text); match != nil {
		asked.add(namedTerm+named(match[1]), wantedPhrase)
		text = match[1] + "\n" + strings.Replace(text, match[0], "\n", 1)
	}
	if line := strings.TrimSpace(text); line != "" && len(line) < longestName {
		asked.add(namedTerm+named(strings.TrimRight(line, "?.!")), wantedPhrase/2)
	}
	var quotations []string
	for _, match := range quoted.FindAllStringSubmatch(text, maxQuoted) {
		phrase := strings.Join(match[1:], "")
		quotations = append(quotations, phrase)
		asked.add(namedTerm+named(phrase), wantedPhrase/2)
		asked.words(phrase, quotedTimes)
	}
	asked.words(text, 1)
	question := asked.question()
	question.phrases, question.whole = phrases(written, quotations), named(written)
	return question
}

// longestName is the maximum length of a whole description, in bytes.
const longestName = 200

// maxQuoted is the maximum number of quoted phrases that count.
const maxQuoted = 16

// asking collects the terms of a question.
type asking struct {
	weights map[string]float64
	order   map[string]int
	written map[string]string
}

// add adds a term. The greater weight of a repeated term counts.
func (a *asking) add(term string, weight float64) {
	if _, known := a.order[term]; !known {
		a.order[term] = len(a.order)
	}
	a.weights[term] = max(a.weights[term], weight)
}

// words adds the terms of a text.
func (a *asking) words(text string, times float64) {
	isChinese := !strings.ContainsFunc(text, isKana)
	eachRun(text, func(r run) {
		switch {
		case r.kind == ideogram:
			r.terms(func(term string) {
				if !isChinese || !strings.ContainsAny(term, commonCharacters) {
					a.add(term, weightOf(term)*times)
				}
			})
		case r.kind == emoji:
			r.terms(func(term string) { a.add(term, wantedWord*times) })
		case len(r.text) > longestRun:
		case r.isPath():
			a.path(r, times)
		default:
			a.identifier(r, times)
		}
	})
}

// weightOf returns the weight of a term in a script without spaces. A single character is usually a part of a
// word, and hiragana mostly join words or end them, so both weigh less.
func weightOf(term string) float64 {
	if utf8.RuneCountInString(term) == 1 || !strings.ContainsFunc(term, func(r rune) bool { return !unicode.Is(unicode.Hiragana, r) }) {
		return wantedPart
	}
	return wantedWord
}

func isKana(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) }

func (a *asking) path(r run, times float64) {
	path := folded(r.text)
	a.add(pathTerm+path, wantedPath*times)
	a.add(readTerm+path, wantedRead*times)
	a.add(path, wantedName*times)
	file := path[strings.LastIndexByte(path, '/')+1:]
	a.add(pathTerm+file, wantedPart*times)
	a.add(file, wantedFile*times)
	identifier(r.text[strings.LastIndexAny(r.text, `/\`)+1:], func(term string) { a.add(term, wantedPart*times) })
}

func (a *asking) identifier(r run, times float64) {
	written := strings.ToLower(r.text)
	if !isASCII(r.text) {
		r.text = plainLetters(r.text)
	}
	whole := strings.ToLower(r.text)
	var terms []string
	identifier(r.text, func(term string) { terms = append(terms, term) })
	if r.namesFile() {
		a.add(pathTerm+folded(whole), wantedFile*times)
		a.add(readTerm+folded(whole), wantedFile*times)
	}
	for _, term := range terms {
		if whole != written {
			a.written[term] = written
		}
		switch {
		case len(terms) == 1 && (isCommon(whole) || isLetter(term)):
		case len(terms) == 1:
			a.add(term, wantedWord*times)
		case term == whole:
			a.add(term, wantedName*times)
		default:
			a.add(term, wantedPart*times)
		}
	}
}

// question returns the terms, the most wanted first. Terms of equal weight keep their order in the text.
func (a *asking) question() Question {
	wanted := make([]Wanted, 0, len(a.weights))
	for term, weight := range a.weights {
		wanted = append(wanted, Wanted{Text: term, Weight: weight, Written: a.written[term]})
	}
	slices.SortFunc(wanted, func(x, y Wanted) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(a.order[x.Text], a.order[y.Text]))
	})
	return Question{Wanted: wanted[:min(len(wanted), MaxWanted)]}
}

// commonCharacters are Chinese characters that carry no search meaning.
const commonCharacters = "的了吗呢么什是我你您他她它们这那哪谁几怎吧啊嗎麼們這誰幾"

// common are words that carry no search meaning.
const common = ` a about after again all also am an and any are as at be because been before being both but by can could
 did do does doing done don each earlier exactly few for from get got had has have having he her here him his how i if in into is it its
 just let like lets ll make me more most my need no not now of off ok okay on once one only or other our out over own please previously
 print printed put ran re said same see should show showed so some such sure t take than that the their them then there these
 they thing things this those through to too under until up us use used ve very want was we were what when where which while who why
 will with would yes you your result output outputs command commands tell told say exact `

func isCommon(word string) bool { return strings.Contains(common, " "+word+" ") }

// The arguments of the clients' tools with telling names.
const (
	nameArguments    = " description title summary name subject task "
	pathArguments    = " file_path path filepath file filename notebook_path absolute_path target_file relative_workspace_path directory dir paths files cwd workdir "
	contentArguments = " content contents new_string old_string new_str old_str newtext oldtext file_text new_source patch diff edits insert_text code_edit text replacement "
)

// readers are words in the names of tools that return a file's content.
const readers = " read view cat open readfile "

// called is the document of a call without its result.
func called(block *conversation.Block, said string) Document {
	document := Document{Kind: Call, Tool: block.Name, Reads: isReader(block.Name), blocks: []conversation.Block{*block}}
	document.fields = append(document.fields, field{text: block.Name, weight: inContent})
	if said != "" {
		document.fields = append(document.fields, field{text: said, weight: inContent})
	}
	eachArgument(block.Text, document.argument)
	return document
}

// isReader reports whether a tool's name contains a word for reading.
func isReader(tool string) bool {
	found := false
	identifier(tool, func(term string) { found = found || strings.Contains(readers, " "+term+" ") })
	return found
}

// argument adds one argument to the document.
func (d *Document) argument(key, value string) {
	key = " " + strings.ToLower(key) + " "
	switch {
	case strings.TrimSpace(value) == "":
	case strings.Contains(nameArguments, key):
		d.fields = append(d.fields, field{text: value, weight: inName, name: true})
	case strings.Contains(pathArguments, key):
		d.fields = append(d.fields, field{text: value, weight: inPath})
		if path := strings.TrimSpace(value); !slices.Contains(d.Paths, path) && len(path) <= longestRun {
			d.Paths = append(d.Paths, path)
		}
	case strings.Contains(contentArguments, key):
		d.fields = append(d.fields, field{text: value, weight: inContent})
	default:
		d.fields = append(d.fields, field{text: value, weight: inCommand})
		d.name(value)
	}
}

// name adds the files in a command to the document's paths.
func (d *Document) name(command string) {
	eachRun(command, func(r run) {
		if r.namesFile() && len(d.Paths) < maxPaths && !slices.Contains(d.Paths, r.text) {
			d.Paths = append(d.Paths, r.text)
		}
	})
}

// maxPaths bounds the files that a document names.
const maxPaths = 32

// eachArgument calls visit with the strings of a call's arguments and their names, in the order of the text.
// Arguments that are no JSON object count as one argument without a name.
func eachArgument(arguments string, visit func(key, value string)) {
	decoder := json.NewDecoder(strings.NewReader(arguments))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		visit("", arguments)
		return
	}
	walk(decoder, "", true, visit)
}

// walk reads the rest of an object or list. A list's elements have the list's name.
func walk(decoder *json.Decoder, key string, object bool, visit func(key, value string)) {
	isKey := object
	for {
		token, err := decoder.Token()
		if err != nil {
			return
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '}' || token == ']' {
				return
			}
			walk(decoder, key, token == '{', visit)
			isKey = object
		case string:
			if isKey {
				key, isKey = token, false
				continue
			}
			visit(key, token)
			isKey = object
		default:
			isKey = object
		}
	}
}
