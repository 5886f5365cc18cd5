package sessiontest

import (
	"fmt"
	"strings"
)

// variety adds further content to an exchange of a varied session. A nil variety adds nothing.
type variety struct{ writer }

func varietyOf(e exchange) *variety {
	if e.lot == 0 {
		return nil
	}
	return &variety{writer{random: drawing(e.lot, 2)}}
}

// chance draws; it is always false if the session is not varied.
func (v *variety) chance(percent int) bool { return v != nil && v.writer.chance(percent) }

// document is a text document.
func (v *variety) document() string {
	return fmt.Sprintf(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":%s},"title":"notes","citations":{"enabled":true}}`, quote(v.prose(400)))
}

// found is a search result from the client.
func (v *variety) found() string {
	return fmt.Sprintf(`{"type":"search_result","source":"https://docs.example/%s","title":"docs","content":[{"type":"text","text":%s}],"citations":{"enabled":true}}`, v.noun(), quote(v.prose(300)))
}

// attachments are blocks before the typed text.
func (v *variety) attachments() []string {
	var blocks []string
	for _, block := range []func() string{
		func() string { return v.document() },
		func() string { return v.found() },
		func() string { return `{"type":"container_upload","file_id":"file_011"}` },
		func() string { return `{"type":"image","source":{"type":"file","file_id":"file_012"}}` },
		func() string { return `{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}` },
	} {
		if v.chance(12) {
			blocks = append(blocks, block())
		}
	}
	return blocks
}

// system adds a system message in the middle of the conversation, for models that accept one.
func (w *anthropicWriter) system(v *variety) {
	older := []string{"-3-", "-4-0", "-4-1", "-4-2", "-4-5", "-4-6", "-4-7"}
	for _, version := range older {
		if strings.Contains(w.session.Options.Model, version) {
			return
		}
	}
	if !v.chance(15) {
		return
	}
	blocks := []string{textBlock("The mode has changed: " + v.sentence())}
	if v.chance(40) {
		blocks = append(blocks, `{"type":"tool_addition","tools":[{"type":"tool_reference","tool_name":"NotebookEdit"}]}`)
	}
	if v.chance(20) {
		blocks = append(blocks, `{"type":"tool_removal","tools":[{"type":"tool_reference","tool_name":"NotebookEdit"}]}`)
	}
	w.message("system", blocks)
}

// resultContent is the result of a call, occasionally in another form.
func (v *variety) resultContent(content string, call toolCall) string {
	if v == nil || call.failed || call.picture != "" {
		return content
	}
	switch v.random.IntN(16) {
	case 0:
		return fmt.Sprintf("[%s,%s,%s]", textBlock("before"), imageBlock(v.picture()), textBlock(call.result+"."))
	case 1:
		return fmt.Sprintf("[%s,%s]", textBlock(call.result+"."), v.document())
	case 2:
		return fmt.Sprintf("[%s,%s]", v.found(), v.found())
	case 3:
		return `[{"type":"tool_reference","tool_name":"NotebookEdit"}]`
	case 4:
		return "[]"
	default:
		return content
	}
}

func searchCall(id string, v *variety) string {
	return fmt.Sprintf(`{"type":"server_tool_use","id":%s,"name":"web_search","input":{"query":%s}}`, quote(id), quote(v.sentence()))
}

func searchResult(id string, v *variety) string {
	return fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":%s,"content":[{"type":"web_search_result","url":"https://example.com","title":"t","encrypted_content":%s,"page_age":null}]}`, quote(id), quote(v.code("sealed", 300)))
}

// served are calls that the provider answered within the answer.
func (v *variety) served(s *Session, turn int) []string {
	var blocks []string
	if v.chance(10) {
		id := fmt.Sprintf("srvtoolu_s%d", turn)
		blocks = append(blocks, searchCall(id, v), searchResult(id, v))
	}
	if v.chance(6) {
		blocks = append(blocks,
			fmt.Sprintf(`{"type":"mcp_tool_use","id":"mcptoolu_%d","name":"echo","server_name":"local","input":{"n":%d.0}}`, turn, turn),
			fmt.Sprintf(`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_%d","is_error":false,"content":[%s]}`, turn, textBlock(v.prose(200))))
	}
	if v.chance(4) {
		blocks = append(blocks,
			fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_f%d","name":"tool_search_tool_regex","input":{"pattern":"note"}}`, turn),
			fmt.Sprintf(`{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_f%d","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"NotebookEdit"}]}}`, turn))
	}
	if v.chance(4) {
		blocks = append(blocks,
			fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_c%d","name":"bash_code_execution","input":{"command":"ls"}}`, turn),
			fmt.Sprintf(`{"type":"bash_code_execution_tool_result","tool_use_id":"srvtoolu_c%d","content":{"type":"bash_code_execution_result","stdout":%s,"stderr":"","return_code":0,"content":[]}}`, turn, quote(v.prose(200))))
	}
	if len(blocks) > 0 && s.Options.Thinking && v.chance(30) {
		blocks = append(blocks, textBlock(v.sentence()))
	}
	return blocks
}

// saidBlock is a text block, occasionally with citations.
func (v *variety) saidBlock(text string) string {
	if !v.chance(10) {
		return textBlock(text)
	}
	return fmt.Sprintf(`{"type":"text","text":%s,"citations":[{"type":"char_location","cited_text":"x","document_index":0,"document_title":"notes","start_char_index":0,"end_char_index":1}]}`, quote(text))
}
