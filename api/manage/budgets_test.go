package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestPricesOfModelsAreSetTogetherAndRead(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	w.send(t, http.MethodPut, "/models/prices", fmt.Sprintf(`{"prices":[{"model":"small","provider_key_id":%q,"input":1,"output":4,"cache_read":0.1,"cache_write_5m":1.25,"cache_write_1h":2},
		{"model":"house/free","input":0,"output":0}]}`, w.providerKey)).want(t, http.StatusNoContent)
	answer := w.send(t, http.MethodGet, "/models/prices", "")
	answer.want(t, http.StatusOK)
	want := fmt.Sprintf(`{"data":[{"model":"house/free","input":0,"output":0},{"model":"small","provider_key_id":%q,"input":1,"output":4,"cache_read":0.1,"cache_write_5m":1.25,"cache_write_1h":2}],"next_cursor":null}`, w.providerKey)
	if strings.TrimSpace(string(answer.body)) != want {
		t.Errorf("%s, want %s", answer.body, want)
	}
	for body, field := range map[string]string{
		`{}`: "prices", `{"prices":[{"model":"m","input":1,"output":-1}]}`: "prices[0].output", `{"prices":[{"model":"m","input":1,"output":1,"reading":1}]}`: "reading",
		`{"prices":[{"model":"m","input":1,"output":1},{"model":"m","input":1,"output":1}]}`: "prices[1].model",
	} {
		answer := w.send(t, http.MethodPut, "/models/prices", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
}

func TestLimitsOfModelsAreSetTogetherAndRead(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ada")
	w.send(t, http.MethodPut, "/models/limits", fmt.Sprintf(`{"limits":[{"model":"small","provider_key_id":%q,"window_tokens":32000,"output_tokens":4000},{"model":"house","output_tokens":9}]}`, w.providerKey)).want(t, http.StatusNoContent)
	answer := w.send(t, http.MethodGet, "/models/limits", "")
	answer.want(t, http.StatusOK)
	want := fmt.Sprintf(`{"data":[{"model":"house","output_tokens":9},{"model":"small","provider_key_id":%q,"window_tokens":32000,"output_tokens":4000}],"next_cursor":null}`, w.providerKey)
	if strings.TrimSpace(string(answer.body)) != want {
		t.Errorf("%s, want %s", answer.body, want)
	}
	for body, field := range map[string]string{
		`{}`: "limits", `{"limits":[{"model":"m","window_tokens":32000}]}`: "limits[0].provider_key_id", `{"limits":[{"model":"m"}]}`: "limits[0].window_tokens", `{"limits":[{"model":"m","output":1}]}`: "output",
	} {
		answer := w.send(t, http.MethodPut, "/models/limits", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%s: field %q, want %q", body, got, field)
		}
	}
}

func TestBudgetsAreSetTogetherAndRead(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	person := w.userID(t)
	w.send(t, http.MethodPut, "/budgets", fmt.Sprintf(`{"budgets":[{"kind":"project","id":"search","budget_day_usd":2.5},{"kind":"member","id":%q,"budget_month_usd":10},
		{"kind":"workspace","budget_day_usd":0.000001},{"kind":"project","id":"free","budget_day_usd":0}]}`, person)).want(t, http.StatusNoContent)
	answer := w.send(t, http.MethodGet, "/budgets", "")
	answer.want(t, http.StatusOK)
	var page struct {
		Data []struct {
			Kind, ID string
			Day      float64 `json:"budget_day_usd"`
			Month    float64 `json:"budget_month_usd"`
			Spent    float64 `json:"spent_month_usd"`
		}
	}
	answer.decode(t, &page)
	if len(page.Data) != 3 || fmt.Sprint(page.Data[0]) != "{workspace  1e-06 0 0}" || !strings.Contains(fmt.Sprint(page.Data), "{project search 2.5 0 0}") || !strings.Contains(fmt.Sprint(page.Data), "{member "+person+" 0 10 0}") {
		t.Errorf("budgets %+v", page.Data)
	}
	w.send(t, http.MethodPut, "/budgets", `{"budgets":[{"kind":"end_user","budget_day_usd":0.5,"requests_per_minute":6,"tokens_per_minute":7000}]}`).want(t, http.StatusNoContent)
	if answer := w.send(t, http.MethodGet, "/budgets", ""); !strings.Contains(string(answer.body), `"kind":"end_user","requests_per_minute":6,"tokens_per_minute":7000,"budget_day_usd":0.5,`) {
		t.Errorf("the budget of each end user: %s", answer.body)
	}
	for body, field := range map[string]string{
		`{"budgets":[{"kind":"end_user","id":"ada"}]}`:               "budgets[0].id",
		`{"budgets":[{"kind":"end_user","requests_per_minute":-1}]}`: "budgets[0].requests_per_minute",
		`{"budgets":[{"kind":"workspace","tokens_per_minute":1}]}`:   "budgets[0].tokens_per_minute",
		`{}`:                                     "budgets",
		`{"budgets":[{"kind":"team","id":"x"}]}`: "budgets[0].kind",
		`{"budgets":[{"kind":"workspace","id":"x"}]}`:                                            "budgets[0].id",
		`{"budgets":[{"kind":"workspace"},{"kind":"workspace"}]}`:                                "budgets[1].id",
		`{"budgets":[{"kind":"member","id":"ada"}]}`:                                             "budgets[0].id",
		`{"budgets":[{"kind":"project","id":""}]}`:                                               "budgets[0].id",
		`{"budgets":[{"kind":"workspace","budget_day_usd":0.0000004}]}`:                          "budgets[0].budget_day_usd",
		`{"budgets":[{"kind":"project","id":"a"},{"kind":"workspace","budget_month_usd":-1}]}`:   "budgets[1].budget_month_usd",
		`{"budgets":[` + strings.Repeat(`{"kind":"workspace"},`, 200) + `{"kind":"workspace"}]}`: "budgets",
	} {
		answer := w.send(t, http.MethodPut, "/budgets", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if got := answer.field(t); got != field {
			t.Errorf("%.200s: field %q, want %q", body, got, field)
		}
	}
	w.send(t, http.MethodPut, "/budgets", `{"budgets":[]}`).want(t, http.StatusNoContent)
}
