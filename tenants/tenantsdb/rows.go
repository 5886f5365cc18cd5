package tenantsdb

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// tenant is the scope of a workspace.
func (c *core) tenant(tenant tenants.Tenant) batchdb.Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error { return c.inTenant(ctx, tenant, fn) }
}

// user is the scope of a person.
func (c *core) user(user uuid.UUID) batchdb.Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error { return c.inUser(ctx, user, fn) }
}

// operator is the scope of an operator.
func (c *core) operator(operator uuid.UUID) batchdb.Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error { return c.asOperator(ctx, operator, fn) }
}

// all returns the rows of a table that match a condition, in order, in a transaction of its own.
func all[T any](ctx context.Context, in batchdb.Scope, table, order, condition string, values ...any) ([]T, error) {
	return batchdb.Read(ctx, in, func(tx *gorm.DB) ([]T, error) {
		return list[T](tx.Table(table).Where(condition, values...).Order(order))
	})
}

// list returns the rows of a query.
func list[T any](query *gorm.DB) ([]T, error) {
	var found []T
	err := query.Find(&found).Error
	return found, err
}

// find returns the first row of a query, or tenants.ErrNotFound.
func find[T any](query *gorm.DB) (T, error) {
	var found T
	err := query.Take(&found).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = tenants.ErrNotFound
	}
	return found, err
}

// locked makes a query lock its rows until the transaction ends.
func locked() clause.Expression { return clause.Locking{Strength: clause.LockingStrengthUpdate} }

// create inserts a row into a table, without the omitted columns. It is sent with the transaction's next awaited
// statement, which returns its error: see transaction.
func create(tx *gorm.DB, table string, row any, omitted ...string) error {
	return queue(tx, batchdb.DryRun(tx).Table(table).Omit(omitted...).Create(row))
}

// update sets columns of the rows that match a condition to the fields of a row. It is sent like create.
func update(tx *gorm.DB, table string, row any, columns []string, condition string, values ...any) error {
	return queue(tx, batchdb.DryRun(tx).Table(table).Where(condition, values...).Select(columns).Updates(row))
}

// queue queues a statement with texts that columns accept.
func queue(tx, built *gorm.DB) error {
	for i, value := range built.Statement.Vars {
		if text, is := value.(string); is {
			built.Statement.Vars[i] = storable(text)
		}
	}
	return batchdb.Queue(tx, built)
}

// owned is a row of a workspace: its id and the columns of a domain type.
type owned[T any] struct {
	WorkspaceID tenants.WorkspaceID
	Row         T `gorm:"embedded"`
}

// registerForms registers the stored forms of fields, which domain types name in their tags.
func registerForms() {
	schema.RegisterSerializer("null", nullForm{})
	schema.RegisterSerializer("list", listForm{","})
	schema.RegisterSerializer("lines", listForm{"\n"})
	schema.RegisterSerializer("array", arrayForm{})
	schema.RegisterSerializer("seconds", durationForm{time.Second})
}

// nullForm stores zero as NULL.
type nullForm struct{}

// Scan implements schema.SerializerInterface.
func (nullForm) Scan(ctx context.Context, field *schema.Field, to reflect.Value, stored any) error {
	return field.Set(ctx, to, stored)
}

// Value implements schema.SerializerInterface.
func (nullForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	if reflect.ValueOf(value).IsZero() {
		return nil, nil //nolint:nilnil // NULL
	}
	return value, nil
}

// listForm stores a list of texts as one, with a separator.
type listForm struct{ separator string }

// Scan implements schema.SerializerInterface.
func (f listForm) Scan(ctx context.Context, field *schema.Field, to reflect.Value, stored any) error {
	text, _ := stored.(string)
	texts := field.ReflectValueOf(ctx, to)
	texts.SetZero()
	for part := range strings.SplitSeq(text, f.separator) {
		if part != "" {
			texts.Set(reflect.Append(texts, reflect.ValueOf(part).Convert(texts.Type().Elem())))
		}
	}
	return nil
}

// Value implements schema.SerializerInterface.
func (f listForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	texts := reflect.ValueOf(value)
	joined := make([]string, texts.Len())
	for i := range joined {
		joined[i] = texts.Index(i).String()
	}
	return storable(strings.Join(joined, f.separator)), nil
}

// arrayForm stores a list as a JSON array, which is empty for nil.
type arrayForm struct{ schema.JSONSerializer }

// Value implements schema.SerializerInterface.
func (arrayForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	if reflect.ValueOf(value).Len() == 0 {
		return "[]", nil
	}
	encoded, err := json.Marshal(value)
	return string(encoded), err
}

// durationForm stores a duration as a number of units.
type durationForm struct{ unit time.Duration }

// Scan implements schema.SerializerInterface.
func (f durationForm) Scan(ctx context.Context, field *schema.Field, to reflect.Value, stored any) error {
	units, _ := stored.(int64)
	return field.Set(ctx, to, units*int64(f.unit))
}

// Value implements schema.SerializerInterface.
func (f durationForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	return reflect.ValueOf(value).Int() / int64(f.unit), nil
}
