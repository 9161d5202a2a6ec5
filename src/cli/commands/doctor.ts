/** `taskflow doctor`. */
import type { Command } from 'commander';

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .summary('tell what this machine has and what is missing')
    .description('Tell what this machine has for running taskflow, and what to do about what is missing.')
    .action(async () => (await import('../examination.ts')).examine());
}
