"""What happens to one question: opening, session, turn, state, answer, plan."""
