"""How one question is answered: opening, session, turn, state, answer, plan."""
