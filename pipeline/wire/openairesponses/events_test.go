package openairesponses_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Of all events only those that end an item, the response or the stream say
// anything that the others do not.
func TestEveryOtherEventIsPassedOver(t *testing.T) {
	t.Parallel()
	var others strings.Builder
	for i, name := range []string{
		"response.queued", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.content_part.done",
		"response.output_text.delta", "response.output_text.done", "response.output_text.annotation.added", "response.refusal.delta", "response.refusal.done",
		"response.function_call_arguments.delta", "response.function_call_arguments.done", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
		"response.reasoning_summary_part.added", "response.reasoning_summary_part.done", "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
		"response.reasoning_text.delta", "response.reasoning_text.done", "response.web_search_call.in_progress", "response.web_search_call.searching",
		"response.web_search_call.completed", "response.file_search_call.completed", "response.code_interpreter_call_code.delta", "response.code_interpreter_call.completed",
		"response.image_generation_call.partial_image", "response.mcp_call.in_progress", "response.mcp_call_arguments.delta", "response.mcp_call.failed",
		"response.mcp_list_tools.completed", "response.audio.delta", "response.audio.transcript.done", "response.future_thing.done", "future",
	} {
		fmt.Fprintf(&others, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,\"item\":%s,\"item_id\":\"x\",\"delta\":\"d\",\"output_index\":9}\n\n", name, name, i, message)
	}
	want := answers()[0].Want
	end := "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" + completed + "}\n\n"
	tap := codec().Tap(true)
	_, _ = tap.Write([]byte(others.String() + toolStream + others.String() + end))
	if got := tap.Answer(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Wire fact 0.2: what the provider left out of the input does not disturb the
// reading of its answer.
func TestInputTransformationsAreNoted(t *testing.T) {
	t.Parallel()
	body := strings.Replace(completed, `{"id"`, `{"input_transformations":[{"type":"reasoning_dropped","path":"input[2]","reason":"prefix_mismatch"}],"id"`, 1)
	tap := codec().Tap(false)
	_, _ = tap.Write([]byte(body))
	want := answers()[0].Want
	want.Reduced = true
	if got := tap.Answer(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
