package operate

// Operation names an operation in records.
type Operation string

// The operations.
const (
	ListQueues             Operation = "list_queues"
	Peek                   Operation = "peek"
	Get                    Operation = "get"
	PurgeQueue             Operation = "purge_queue"
	ListDeadLetterQueues   Operation = "list_dead_letter_queues"
	SearchDeadLetters      Operation = "search_dead_letters" // and groups
	SaveFilter             Operation = "save_filter"
	DeleteFilter           Operation = "delete_filter"
	ExportDeadLetters      Operation = "export_dead_letters"
	PurgeDeadLetters       Operation = "purge_dead_letters"
	ImportDeadLetters      Operation = "import_dead_letters"
	ResendDeadLetter       Operation = "resend_dead_letter"
	StartReplay            Operation = "start_replay"
	ListReplays            Operation = "list_replays"
	SeeReplay              Operation = "see_replay"
	CancelReplay           Operation = "cancel_replay"
	ResumeReplay           Operation = "resume_replay"
	ListDeadlines          Operation = "list_deadlines"
	ChangeDeadline         Operation = "change_deadline"
	RenewLock              Operation = "renew_lock"
	ListDelayed            Operation = "list_delayed"
	CancelDelayed          Operation = "cancel_delayed"
	ExportDefinitions      Operation = "export_definitions"
	ExportVHostDefinitions Operation = "export_vhost_definitions"
	ImportDefinitions      Operation = "import_definitions"
	ListConnections        Operation = "list_connections"
	CloseConnections       Operation = "close_connections"
	DeleteQueue            Operation = "delete_queue"
	Publish                Operation = "publish"
	TryMessage             Operation = "try_message"
	LookAround             Operation = "look_around"   // status, alerts, forecasts, the audit
	ChangeAlerts           Operation = "change_alerts" // silences, and tests of sinks
	AllowQueue             Operation = "allow_queue"   // of a RabbitMQ, to be kept again
	PauseRabbitMQ          Operation = "pause_rabbitmq"
	ResumeRabbitMQ         Operation = "resume_rabbitmq"
	ReadClock              Operation = "read_clock"
	MoveClock              Operation = "move_clock" // a manual one
	// ManyAttempts is the record of further attempts within a minute that were refused or failed. It is not an operation that users do.
	ManyAttempts Operation = "many_attempts"
)

// need says when an operation requires a permission on its queue.
type need uint8

const (
	no            need = iota
	always             // of everybody
	unlessMonitor      // not of users with the role Monitor, who see every queue
)

// Rule is what an operation requires. An operation in a virtual host also requires some permission in it, unless its role is Administrator.
type Rule struct {
	Role  Role
	Looks bool // it changes nothing, so users with the role Monitor may do it in every virtual host
	Read  need // of the queue
	Write need // of the queue; publishing requires the same permissions as over AMQP
	Owner bool // only the owner of the replay or an administrator
}

// rules has the rule of each operation.
var rules = map[Operation]Rule{
	ListQueues:             {Role: Management, Looks: true},
	Peek:                   {Role: Management, Read: always},
	Get:                    {Role: Management, Read: always},
	PurgeQueue:             {Role: Management, Read: always},
	ListDeadLetterQueues:   {Role: Management, Looks: true, Read: unlessMonitor},
	SearchDeadLetters:      {Role: Management, Read: always},
	SaveFilter:             {Role: Management, Read: always},
	DeleteFilter:           {Role: Management, Read: always},
	ExportDeadLetters:      {Role: Management, Read: always},
	PurgeDeadLetters:       {Role: Management, Read: always},
	ImportDeadLetters:      {Role: Management, Read: always},
	ResendDeadLetter:       {Role: Management, Read: always},
	StartReplay:            {Role: Management, Read: always},
	ListReplays:            {Role: Management, Owner: true},
	SeeReplay:              {Role: Management, Owner: true},
	CancelReplay:           {Role: Management, Owner: true},
	ResumeReplay:           {Role: Management, Owner: true},
	ListDeadlines:          {Role: Management, Looks: true, Read: unlessMonitor},
	ChangeDeadline:         {Role: Management, Read: always, Write: always},
	RenewLock:              {Role: Management, Read: always},
	ListDelayed:            {Role: Administrator, Looks: true},
	CancelDelayed:          {Role: Administrator},
	ExportDefinitions:      {Role: Administrator, Looks: true},
	ExportVHostDefinitions: {Role: Policymaker, Looks: true},
	ImportDefinitions:      {Role: Administrator},
	ListConnections:        {Role: Management, Looks: true}, // the actor's own; users with the role Monitor see all
	CloseConnections:       {Role: Management},              // the actor's own; administrators may close all
	DeleteQueue:            {Role: Management},
	Publish:                {Role: Management},
	TryMessage:             {Role: Management, Looks: true},
	LookAround:             {Role: Monitor, Looks: true},
	ChangeAlerts:           {Role: Administrator},
	AllowQueue:             {Role: Administrator},
	PauseRabbitMQ:          {Role: Administrator},
	ResumeRabbitMQ:         {Role: Administrator},
	ReadClock:              {Role: Management, Looks: true},
	MoveClock:              {Role: Administrator},
}

// RoleOf returns the role that an operation requires.
func RoleOf(op Operation) Role { return rules[op].Role }
