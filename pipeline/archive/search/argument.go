package search

import (
	"encoding/json"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

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
