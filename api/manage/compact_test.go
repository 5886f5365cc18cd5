package manage_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// E12: an order waits with its lane, with or without instructions.
func TestACompactionWaitsForTheNextRequest(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	var order struct {
		Lane, Instructions string
		AskedAt            time.Time `json:"asked_at"`
	}
	for _, body := range []string{"", "{}", `{"instructions":"Keep the API."}`} {
		answer := w.send(t, http.MethodPost, w.path("/compact"), body)
		answer.want(t, http.StatusAccepted)
		answer.decode(t, &order)
		if order.Lane != w.lane.String() || order.AskedAt.IsZero() {
			t.Errorf("order %+v", order)
		}
	}
	if order.Instructions != "Keep the API." {
		t.Errorf("order %+v", order)
	}
	var shown struct {
		Lanes []struct {
			AskedAt time.Time `json:"asked_at"`
			Breaker string
		}
	}
	answer := w.send(t, http.MethodGet, w.path(""), "")
	answer.decode(t, &shown)
	if len(shown.Lanes) != 1 || !shown.Lanes[0].AskedAt.Equal(order.AskedAt) || shown.Lanes[0].Breaker != "" {
		t.Errorf("the session shows %+v, asked at %v", shown.Lanes, order.AskedAt)
	}
	w.send(t, http.MethodPost, w.path("/compact"), `{"instructions":"`+strings.Repeat("é", 2001)+`"}`).want(t, http.StatusUnprocessableEntity)
	w.send(t, http.MethodPost, w.path("/compact?lane=none"), "").want(t, http.StatusNotFound)
}
