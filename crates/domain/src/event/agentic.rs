//! The events between an agent and its tools.

/// What a tool has answered.
pub const TOOL_RESULT: &str = "agentic.tool_result";
/// A request for a tool begins so; the tool's name follows.
pub const TOOL_REQUEST: &str = "agentic.tool_request.";
/// What else a turn of an agent emits.
const OF_TURNS: [&str; 3] = [TOOL_RESULT, "agent.completed", "agent.escalated"];

/// Whether an event of this type is between two turns of one agent, or is its last word: it takes along the files of the step that
/// emitted it.
pub fn is_between_turns(kind: &str) -> bool {
    kind.starts_with(TOOL_REQUEST) || OF_TURNS.contains(&kind)
}
