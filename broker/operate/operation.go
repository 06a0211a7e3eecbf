package operate

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
)

// Op is an operation as a value. What every face has of it is derived from this: the routes of the API with their document, the command, the list or the
// form on a page, the check of rights, and the record. Define makes one.
type Op struct {
	Name  Operation
	Title string // what it does, as a sentence without a full stop: help of the command, summary in the API's document
	Text  string // more for the API's document, Markdown
	Noun  string // what it is about, such as "user", for errors
	Rule
	NoBroker bool // it is also about the RabbitMQ that Curfew runs beside, and then there is no broker
	OfNode   bool // it is about the node, which serves it, and not about a broker (Options.Node)
	Makes    bool // it makes what it returns: the API answers 201
	AnyVHost bool // the virtual host that the request names need not exist, and do says what is wrong then

	// Routes of the API, such as "PUT /api/users/{user}". Parts of a path and, without a body, of the query are fields of the request. The command uses
	// the first. Only those below /api/curfew are documented, and have the fields that RabbitMQ does not have. One answers with the only row of a list.
	Routes []string
	One    string
	ByHand bool // its routes are RabbitMQ's, which broker/management serves: the command shows their answers
	// Command is the words of the command and the fields that are its arguments: "user passwd <user>". Variant is a flag that chooses this operation
	// of two with the same words.
	Command, Variant, Example string
	Help                      string            // more for the help of the command
	Sets                      map[string]any    // fields that the command sets
	Starts                    map[string]string // what flags have unless they are given, if it is not what their fields say
	Flags                     []string          // the fields that are its flags; nil: all that are nothing else
	Also                      []Way             // other commands that do it
	Lists                     string            // the command that lists what it may be about, for the error about what does not exist
	Alias                     string            // another name of the command's last word
	Quiet                     bool              // it changes nothing, and is not recorded; unlike one that Looks it does not open other virtual hosts to the role Monitor
	Watched                   bool              // the command has --watch
	Slow                      bool              // it may take longer than other requests
	Body                      int64             // the longest body that the API takes, most of it a payload, in bytes; 0: that of other requests
	Begins                    bool              // it begins a run, and returns it, unless it is for a dry run
	Long                      bool              // it may take long: it is a run (Begin), for which a client need not wait
	// Page has what the dashboard shows of it.
	Page Page

	// Set by Define. Fields are those of the request, and Columns those of the rows of the result, whose type is Result.
	Fields, Columns []Field
	Result          reflect.Type
	IsList          bool // the result is a list
	IsPage          bool // the result has a list, its field Items, beside other things

	request reflect.Type
	do      func(context.Context, *Call, any) (any, error)
	now     func(*Call, any) (current, version any)
}

// Page is where the dashboard has an operation. A list has a table there; any other operation has a form, or asks for confirmation if it is dangerous.
type Page struct {
	On     string // path of the page that shows it; "": none
	Also   string // of a list: path of another page that shows it
	Post   string // where the form is sent; "": On
	Title  string // heading of its card or page
	Tab    string // entry of the menu that the page belongs to
	Parent string // path of the page above, for a page of its own; /queue is that of the queue that the form names
	Up     string // the name of that page
	Empty  string // of a list: what is said if it is empty
	Opens  string // of a list: path of the page that a row's first cell links to
	Find   string // of a list: what can be searched for; "": nothing
	More   []Link // of a list: what else can be done with a row
	Button string // text of the button
	Done   string // what is said when it is done
	// Rows is the list whose rows have a link to this operation, with the text Link; the fields of both that have the same names say which row it is.
	Rows   Operation
	Link   string
	About  bool                                       // the form shows the row that it is about; those who may not do it see only the row
	Only   func(row any) bool                         // which of them have the link; nil: all
	Live   bool                                       // the page is shown again while it is looked at
	Begin  string                                     // text of the link above the list that opens an empty form; "": none
	Danger bool                                       // it deletes: it is asked for confirmation
	May    func(o *Operations, a Actor, row any) bool // beside the rule, for the link and for a page that asks, or of a form that stays by what its address asks for; nil: it takes any permission in the virtual host
	Then   string                                     // what follows from it
	Typed  string                                     // the field that has to be typed to confirm it, unless it is "0"
	Next   string                                     // path of the page after it, with {field} for fields of the form and the result; "": Parent or On
	Stays  bool                                       // the form is shown again as it was, with what was done in words (Effect)
	DryRun bool                                       // the form first shows what the field dry_run does, in words (Effect)
}

// Way is a command that does an operation with some fields set.
type Way struct {
	Command, Title, Example string
	Sets                    map[string]any
	Flags                   []string
	Starts                  map[string]string
}

// Link is a link to a page. To has {column} for values of a row.
type Link struct{ Text, To string }

// Rowed is a row that makes its line in a table of commands itself: cells with their headings, which have the marks of cli.Printer. at shows an instant.
type Rowed interface {
	Cells(at func(time.Time) string) (heads, cells []string)
}

// Row is a row of the result that has nothing.
func (op *Op) Row() any { return reflect.Zero(rowTypeOf(op.Result)).Interface() }

// Effect is a result that says in words what was or would be done.
type Effect interface {
	// Words are sentences. harm: some of what is said should not happen unknowingly. more: more is done with a field that is a choice of its own,
	// such as retroactive.
	Words() (sentences []string, harm, more bool)
}

// Call is one call of an operation whose rule has been checked.
type Call struct {
	*Operations
	Actor   Actor
	VHost   *broker.VHost  // that the request names; nil: none
	Rights  *broker.Rights // what the actor may do in VHost, as over AMQP
	Created bool           // set by the operation: something is new
	Asks    bool           // set by an operation that somebody has to confirm first: it is not recorded
	At      QueueName      // set by an operation whose request does not name what its record is about
	more    []zap.Field
}

// Within are the virtual host of the request or, if it names none, all that the actor may look into.
func (c *Call) Within() []*broker.VHost {
	if c.VHost != nil {
		return []*broker.VHost{c.VHost}
	}
	return c.VHosts(c.Actor)
}

// Queue is a queue of the request's virtual host, which the request names in its field queue. Errors: ErrNotFound, or ErrNoVHost for a request that
// names no virtual host.
func (c *Call) Queue(name string) (*broker.Queue, error) {
	if c.VHost == nil {
		return nil, ErrNoVHost
	}
	q, err := c.VHost.Queues.Get(c.VHost.Queues.NameOf(name))
	if err != nil {
		return nil, ErrNotFound
	}
	return q, nil
}

// Log adds a field to the record of the call.
func (c *Call) Log(field zap.Field) { c.more = append(c.more, field) }

// None is the result of an operation that has none.
type None = struct{}

// Typed is an operation with the types of its request and result.
type Typed[Q, R any] struct{ *Op }

// All are the operations that were defined, and Defined has them by name.
var (
	All     []*Op
	Defined = map[Operation]*Op{}
)

// Groups are the helps of the commands that only have subcommands, by their words.
var Groups = map[string]string{}

// Group sets the help of a command that only has subcommands.
func Group(words, short string) string {
	Groups[words] = short
	return words
}

// Those returns the operations for which is returns true.
func Those(is func(*Op) bool) (ops []*Op) {
	for _, op := range All {
		if is(op) {
			ops = append(ops, op)
		}
	}
	return ops
}

// Define makes an operation that do does, and adds it to all faces. Q is a struct; tags of its fields say what they are (Field), as do those of the
// rows of a result that is a list or a struct. It is called before faces are made.
func Define[Q, R any](op Op, do func(context.Context, *Call, Q) (R, error)) Typed[Q, R] {
	op.request, op.Result = reflect.TypeFor[Q](), reflect.TypeFor[R]()
	op.Fields, op.Columns = fieldsOf(op.request), fieldsOf(rowTypeOf(op.Result))
	_, op.IsPage = itemsOf(op.Result)
	op.IsList = op.Result.Kind() == reflect.Slice
	op.do = func(ctx context.Context, c *Call, q any) (any, error) { return do(ctx, c, q.(Q)) }
	if Defined[op.Name] != nil {
		panic("operate: " + string(op.Name) + " is defined twice")
	}
	All, Defined[op.Name], Rules[op.Name] = append(All, &op), &op, op.Rule
	return Typed[Q, R]{&op}
}

// Replaces says what the operation would replace: as a request, which fills its form, nil if there is nothing to fill it with; and a version, which changes
// with it, nil if there is nothing yet. At any time one call of such operations replaces something.
func (t Typed[Q, R]) Replaces(now func(c *Call, q Q) (current *Q, version any)) Typed[Q, R] {
	t.now = func(c *Call, q any) (any, any) {
		current, version := now(c, q.(Q))
		if current == nil {
			return nil, version
		}
		return *current, version
	}
	return t
}

// Do does the operation as the actor.
func (t Typed[Q, R]) Do(ctx context.Context, o *Operations, a Actor, q Q) (R, error) {
	result, _, err := o.Do(ctx, a, t.Op, q, nil)
	r, _ := result.(R)
	return r, err
}

// Decode makes a request (decode).
func (op *Op) Decode(values map[string]any) (any, error) {
	return decode(op.Fields, op.request, values)
}

// Checker is a request that says itself what is wrong with it as a whole. Commands ask it before they send it.
type Checker interface{ Check() error }

// Check checks a request of JSON values if it is a Checker. Error: *Wrong among others.
func (op *Op) Check(values map[string]any) error {
	if !op.request.Implements(reflect.TypeFor[Checker]()) {
		return nil
	}
	request, err := op.Decode(values)
	if err == nil {
		err = request.(Checker).Check()
	}
	return err
}

// Field returns a field of the request by its name; nil: there is none.
func (op *Op) Field(name string) *Field {
	for i := range op.Fields {
		if op.Fields[i].Name == name {
			return &op.Fields[i]
		}
	}
	return nil
}

// text is the value of a text field of the request; "" if there is none.
func (op *Op) text(q any, name string) string {
	if f := op.Field(name); f != nil {
		text, _ := f.Of(q).(string)
		return text
	}
	return ""
}

// enter checks the rule for a request.
func (o *Operations) enter(a Actor, op *Op, q any) (*Call, error) {
	c := &Call{Operations: o, Actor: a}
	name := op.text(q, "vhost")
	if name == "" || o.Broker == nil {
		err := o.permit(&a, op.Name, "")
		if err == nil && o.Broker != nil && op.Field("vhost") != nil && !op.Looks && !op.Quiet && !op.AnyVHost {
			err = ErrNoVHost // a form may leave it out, or a program
		}
		return c, err
	}
	vh, err := o.vhost(&a, op.Name, name)
	if errors.Is(err, ErrNoVHost) && op.AnyVHost {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.VHost, c.Rights = vh, o.Broker.RightsOf(a.Name, name)
	if queue := op.text(q, "queue"); queue != "" {
		err = o.MayOn(&a, op.Name, vh, vh.Queues.NameOf(queue))
	}
	return c, err
}

// Do does an operation as the actor, and records it if it changes something. request has the operation's type. seen is the version of what somebody
// saw and may be replaced (Now); nil: whatever there is. created: something is new.
func (o *Operations) Do(ctx context.Context, a Actor, op *Op, request any, seen *string) (result any, created bool, err error) {
	c, err := o.enter(a, op, request)
	if err == nil {
		err = check(op.Fields, request)
	}
	if err == nil && op.now != nil {
		o.replacing.Lock()
		defer o.replacing.Unlock()
		err = c.still(op, request, seen)
	}
	if err == nil {
		result, err = op.do(ctx, c, request)
	}
	if !op.Looks && !op.Quiet && !c.Asks && (!op.tries(request) || Refused(err)) {
		for i := range op.Fields {
			if f := &op.Fields[i]; f.Log != "" && f.Of(request) != nil {
				c.Log(zap.Any(f.Log, f.Of(request)))
			}
		}
		if c.At == (QueueName{}) {
			c.At = QueueName{VHost: op.text(request, "vhost"), Name: op.text(request, "queue")}
		}
		o.Record(a, op.Name, c.At, err, c.more...)
	}
	return result, c.Created && err == nil, err
}

// tries reports whether the request is for a dry run, which changes nothing.
func (op *Op) tries(q any) bool {
	f := op.Field("dry_run")
	return f != nil && f.Of(q) == true
}

// Now returns what the operation would replace, as a request, nil if there is nothing, and its version, "" if there is nothing. The error is about what
// the actor may do.
func (o *Operations) Now(a Actor, op *Op, request any) (current any, version string, err error) {
	c, err := o.enter(a, op, request)
	if err != nil || op.now == nil {
		return nil, "", err
	}
	current, v := op.now(c, request)
	if v == nil {
		return current, "", nil
	}
	return current, o.version(v), nil
}

// still returns *Stale if what would be replaced is not what somebody saw.
func (c *Call) still(op *Op, request any, seen *string) error {
	if seen == nil {
		return nil
	}
	if _, v := op.now(c, request); v != nil && c.version(v) != *seen {
		return &Stale{op.Noun, *seen == ""}
	}
	return nil
}

// Stale means that something is not as it was when somebody looked at it.
type Stale struct {
	Noun   string
	Exists bool // there was nothing then
}

// Error implements error.
func (e *Stale) Error() string {
	if e.Exists {
		return "a " + e.Noun + " with this name already exists"
	}
	return "somebody else has changed this " + e.Noun + " since then"
}

// Words are the words of the command, without its arguments. It is not kept, since the commands of Also have others.
func (op *Op) Words() []string {
	return strings.Fields(op.Command[:strings.IndexAny(op.Command+"<", "<[")])
}

// Each reports whether the command takes its argument several times, as in "ack <incident>...", and does the operation for each.
func (op *Op) Each() bool { return strings.HasSuffix(op.Command, "...") }

// Arguments are the fields that are arguments of the command, in their order; those after the first needed are optional, as in "list [queue]".
func (op *Op) Arguments() (names []string, needed int) {
	for _, part := range strings.Fields(strings.TrimSuffix(op.Command, "...")) {
		switch part[0] {
		case '<':
			needed++
			fallthrough
		case '[':
			names = append(names, part[1:len(part)-1])
		}
	}
	return names, needed
}
