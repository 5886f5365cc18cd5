package recall_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

func TestMessagesWithoutTextAreDescribedNotDumped(t *testing.T) {
	t.Parallel()

	p := setup(t)
	w := p.tenant(t, "ant")
	picture := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n" + strings.Repeat("pixels", 100)))
	body := conversations()[conversation.Anthropic][1]
	body = strings.Replace(body, `"content":"Do it all."`, `"content":[{"type":"text","text":"Do it all as drawn."},`+
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+picture+`"}}]`, 1)
	told := w.converse(t, "/v1/messages", body)
	model := w.model(t, w.key)
	var got messages
	text, failed := model.call("recall_get", message{"pointer": told.name + "#0"}, &got)
	if failed || !strings.Contains(text, "Do it all as drawn.\n[image/png, 608 bytes, not shown]") || strings.Contains(text, picture[:40]) {
		t.Errorf("failed %t: %s", failed, text)
	}
}
