// Package sums reads what the fields of a struct say of the numbers that they hold: where each is stored, what the API and
// files call it, and what it means.
package sums

import (
	"reflect"
	"strconv"
	"strings"
)

// Sum is a number that requests add up to, as the field of a struct describes it in its tags: gorm names the column that
// stores it, json its name in the API ("-" keeps it out), csv its name in files, and help what it means. SQL, JSON, CSV
// and the API's description follow from these tags.
type Sum struct {
	Column, JSON, CSV, Help string

	index []int
}

// Of returns the sums of a struct type in the order of its fields, those of embedded structs included.
func Of[T any]() []Sum {
	var sums []Sum
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if column, is := strings.CutPrefix(field.Tag.Get("gorm"), "column:"); is {
			sums = append(sums, Sum{
				Column: column, JSON: field.Tag.Get("json"), CSV: field.Tag.Get("csv"), Help: field.Tag.Get("help"), index: field.Index,
			})
		}
	}
	return sums
}

// In returns the sum in a pointer to its struct.
func (s *Sum) In(of any) int64 { return s.field(of).Int() }

// Add adds to the sum in a pointer to its struct.
func (s *Sum) Add(to any, n int64) { s.field(to).SetInt(s.In(to) + n) }

func (s *Sum) field(of any) reflect.Value { return reflect.ValueOf(of).Elem().FieldByIndex(s.index) }

// SQL returns a list of what SQL there is for each sum, with % in place of its column.
func SQL(sums []Sum, each, separator string) string {
	parts := make([]string, len(sums))
	for i := range sums {
		parts[i] = strings.ReplaceAll(each, "%", sums[i].Column)
	}
	return strings.Join(parts, separator)
}

// CSV returns the names in files of the sums that have one, and their values in a pointer to their struct.
func CSV(sums []Sum, of any) (names, values []string) {
	for i := range sums {
		if sums[i].CSV != "" {
			names, values = append(names, sums[i].CSV), append(values, strconv.FormatInt(sums[i].In(of), 10))
		}
	}
	return names, values
}
