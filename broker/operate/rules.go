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
	ListPolicies           Operation = "list_policies"
	SetPolicy              Operation = "set_policy"
	ClearPolicy            Operation = "clear_policy"
	SetOperatorPolicy      Operation = "set_operator_policy"
	ClearOperatorPolicy    Operation = "clear_operator_policy"
	ListParameters         Operation = "list_parameters"
	SetParameter           Operation = "set_parameter"
	ClearParameter         Operation = "clear_parameter"
	ListGlobalParameters   Operation = "list_global_parameters"
	SetGlobalParameter     Operation = "set_global_parameter"
	ClearGlobalParameter   Operation = "clear_global_parameter"
	ExportDefinitions      Operation = "export_definitions"
	ExportVHostDefinitions Operation = "export_vhost_definitions"
	ImportDefinitions      Operation = "import_definitions"
	ListConnections        Operation = "list_connections"
	CloseConnections       Operation = "close_connections"
	DeclareQueue           Operation = "declare_queue"
	DeleteQueue            Operation = "delete_queue"
	ListExchanges          Operation = "list_exchanges"
	DeclareExchange        Operation = "declare_exchange"
	DeleteExchange         Operation = "delete_exchange"
	ListBindings           Operation = "list_bindings"
	Bind                   Operation = "bind"
	Unbind                 Operation = "unbind"
	Publish                Operation = "publish"
	TryMessage             Operation = "try_message"
	ChangeVHosts           Operation = "change_vhosts" // make, protect and limit them
	DeleteVHost            Operation = "delete_vhost"
	ListUsers              Operation = "list_users" // with their permissions
	SetUser                Operation = "set_user"
	DeleteUser             Operation = "delete_user"
	SetPermission          Operation = "set_permission"
	ClearPermission        Operation = "clear_permission"
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

// rule is what an operation requires. An operation in a virtual host also requires some permission in it, unless its role is Administrator.
type rule struct {
	role  Role
	looks bool // it changes nothing, so users with the role Monitor may do it in every virtual host
	read  need // of the queue
	write need // of the queue; publishing requires the same permissions as over AMQP
	owner bool // only the owner of the replay or an administrator
}

// rules has the rule of each operation.
var rules = map[Operation]rule{
	ListQueues:             {role: Management, looks: true},
	Peek:                   {role: Management, read: always},
	Get:                    {role: Management, read: always},
	PurgeQueue:             {role: Management, read: always},
	ListDeadLetterQueues:   {role: Management, looks: true, read: unlessMonitor},
	SearchDeadLetters:      {role: Management, read: always},
	SaveFilter:             {role: Management, read: always},
	DeleteFilter:           {role: Management, read: always},
	ExportDeadLetters:      {role: Management, read: always},
	PurgeDeadLetters:       {role: Management, read: always},
	ImportDeadLetters:      {role: Management, read: always},
	ResendDeadLetter:       {role: Management, read: always},
	StartReplay:            {role: Management, read: always},
	ListReplays:            {role: Management, owner: true},
	SeeReplay:              {role: Management, owner: true},
	CancelReplay:           {role: Management, owner: true},
	ResumeReplay:           {role: Management, owner: true},
	ListDeadlines:          {role: Management, looks: true, read: unlessMonitor},
	ChangeDeadline:         {role: Management, read: always, write: always},
	RenewLock:              {role: Management, read: always},
	ListDelayed:            {role: Administrator, looks: true},
	CancelDelayed:          {role: Administrator},
	ListPolicies:           {role: Management, looks: true},
	SetPolicy:              {role: Policymaker},
	ClearPolicy:            {role: Policymaker},
	SetOperatorPolicy:      {role: Administrator},
	ClearOperatorPolicy:    {role: Administrator},
	ListParameters:         {role: Policymaker, looks: true},
	SetParameter:           {role: Policymaker}, // operator policies and limits: Administrator
	ClearParameter:         {role: Policymaker}, // likewise
	ListGlobalParameters:   {role: Policymaker, looks: true},
	SetGlobalParameter:     {role: Administrator},
	ClearGlobalParameter:   {role: Administrator},
	ExportDefinitions:      {role: Administrator, looks: true},
	ExportVHostDefinitions: {role: Policymaker, looks: true},
	ImportDefinitions:      {role: Administrator},
	ListConnections:        {role: Management, looks: true}, // the actor's own; users with the role Monitor see all
	CloseConnections:       {role: Management},              // the actor's own; administrators may close all
	DeclareQueue:           {role: Management},              // from here on: the permissions of the AMQP methods
	DeleteQueue:            {role: Management},
	ListExchanges:          {role: Management, looks: true},
	DeclareExchange:        {role: Management},
	DeleteExchange:         {role: Management},
	ListBindings:           {role: Management, looks: true},
	Bind:                   {role: Management},
	Unbind:                 {role: Management},
	Publish:                {role: Management},
	TryMessage:             {role: Management, looks: true},
	ChangeVHosts:           {role: Administrator},
	DeleteVHost:            {role: Administrator},
	ListUsers:              {role: Administrator, looks: true},
	SetUser:                {role: Administrator},
	DeleteUser:             {role: Administrator},
	SetPermission:          {role: Administrator},
	ClearPermission:        {role: Administrator},
	LookAround:             {role: Monitor, looks: true},
	ChangeAlerts:           {role: Administrator},
	AllowQueue:             {role: Administrator},
	PauseRabbitMQ:          {role: Administrator},
	ResumeRabbitMQ:         {role: Administrator},
	ReadClock:              {role: Management, looks: true},
	MoveClock:              {role: Administrator},
}

// RoleOf returns the role that an operation requires.
func RoleOf(op Operation) Role { return rules[op].role }
