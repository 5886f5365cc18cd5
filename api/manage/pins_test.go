package manage_test

import (
	"net/http"
	"testing"
)

// E12: a turn is pinned and unpinned by its lane and message; what is not a message
// of the lane is refused with what to send.
func TestATurnIsPinnedAndUnpinned(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	var pins struct {
		Data []struct {
			Lane     string
			Message  int
			PinnedBy string `json:"pinned_by"`
		}
	}
	for range 2 {
		answer := w.send(t, http.MethodPost, w.path("/pins?lane=%s", w.lane), `{"message":3}`)
		answer.want(t, http.StatusOK)
		answer.decode(t, &pins)
		if len(pins.Data) != 2 || pins.Data[1].Message != 3 || pins.Data[1].Lane != w.lane.String() || pins.Data[1].PinnedBy == "" {
			t.Errorf("pins are %+v", pins.Data)
		}
	}
	for body, status := range map[string]int{
		`{"message":8}`: http.StatusUnprocessableEntity, `{"message":-1}`: http.StatusUnprocessableEntity, `{}`: http.StatusUnprocessableEntity,
		`{"message":"3"}`: http.StatusUnprocessableEntity, `{"turn":3}`: http.StatusUnprocessableEntity,
	} {
		w.send(t, http.MethodPost, w.path("/pins"), body).want(t, status)
	}
	w.send(t, http.MethodDelete, w.path("/pins/5"), "").want(t, http.StatusNotFound)
	w.send(t, http.MethodDelete, w.path("/pins/three"), "").want(t, http.StatusNotFound)
	w.send(t, http.MethodDelete, w.path("/pins/3"), "").want(t, http.StatusNoContent)
	answer := w.send(t, http.MethodGet, w.path("/pins"), "")
	answer.want(t, http.StatusOK)
	answer.decode(t, &pins)
	if len(pins.Data) != 1 {
		t.Errorf("pins are %+v", pins.Data)
	}
}

// E12: a whole session is pinned and released, and its page of the API says since when.
func TestASessionIsPinnedAndReleased(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	pinned := func() string {
		var session struct {
			PinnedAt string `json:"pinned_at"`
		}
		answer := w.send(t, http.MethodGet, w.path(""), "")
		answer.want(t, http.StatusOK)
		answer.decode(t, &session)
		return session.PinnedAt
	}
	since := pinned()
	w.send(t, http.MethodPut, w.path("/pin"), "").want(t, http.StatusNoContent)
	if since == "" || pinned() != since {
		t.Errorf("pinned since %q, then %q", since, pinned())
	}
	w.send(t, http.MethodDelete, w.path("/pin"), "").want(t, http.StatusNoContent)
	w.send(t, http.MethodDelete, w.path("/pin"), "").want(t, http.StatusNotFound)
	if since := pinned(); since != "" {
		t.Errorf("released, but pinned since %s", since)
	}
}
