/** A graph of tasks, each with the task that undoes it: when the trip fails or is cancelled, bookings are taken back. */
import {
  configMaps,
  defineFlow,
  defineKind,
  defineSchema,
  defineTasks,
  NotFound,
  type ObjectOf,
  ownerReferenceTo,
  PermanentError,
  type TaskContext,
  z,
} from 'taskflow-operator';

const BOOKABLE = ['flight', 'hotel', 'car'] as const;
type Bookable = (typeof BOOKABLE)[number];

const schema = defineSchema({
  group: 'examples.taskflow.dev',
  version: 'v1alpha1',
  kind: 'Trip',
  description: 'Books all that a trip needs, or nothing.',
  spec: z.object({
    to: z.string().min(1).describe('Where it goes.'),
    soldOut: z.enum(BOOKABLE).optional().describe('What cannot be had, to see the others taken back.'),
  }),
  status: z.object({}),
  columns: [{ name: 'To', jsonPath: '.spec.to' }],
});
type Trip = ObjectOf<typeof schema>;

/** A booking is a ConfigMap, for everybody to see. */
async function book(ctx: TaskContext<Trip>, what: Bookable): Promise<void> {
  const { to, soldOut } = ctx.object.spec;
  if (soldOut === what) throw new PermanentError(`no ${what} to be had`, { reason: 'SoldOut' });
  await ctx.guard();
  const owner = ownerReferenceTo(ctx.object);
  const booking = { metadata: { ...bookingRef(ctx, what), ownerReferences: [owner] }, data: { to } };
  await ctx.client.apply(configMaps, booking, { fieldManager: 'trip' });
}

async function takeBack(ctx: TaskContext<Trip>, what: Bookable): Promise<void> {
  await ctx.guard();
  try {
    await ctx.client.delete(configMaps, bookingRef(ctx, what));
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
  }
}

function bookingRef({ object }: TaskContext<Trip>, what: Bookable): { name: string; namespace: string } {
  const { name, namespace = '' } = object.metadata;
  return { name: `${name}-${what}`, namespace };
}

const tasks = defineTasks(schema, {
  bookFlight: (ctx) => book(ctx, 'flight'),
  bookHotel: (ctx) => book(ctx, 'hotel'),
  bookCar: (ctx) => book(ctx, 'car'),
  takeBackFlight: (ctx) => takeBack(ctx, 'flight'),
  takeBackHotel: (ctx) => takeBack(ctx, 'hotel'),
  takeBackCar: (ctx) => takeBack(ctx, 'car'),
  waitForPayment: async (ctx) =>
    ctx.waitUntil(
      async () => (await ctx.refresh()).metadata.annotations?.['examples.taskflow.dev/paid'] === 'true',
      { intervalMs: 1_000, reason: 'the annotation examples.taskflow.dev/paid' },
    ),
});

const bookTrip = defineFlow<Trip>('book trip')
  .graphOf([
    { id: 'flight', task: tasks.bookFlight, compensate: tasks.takeBackFlight },
    { id: 'hotel', task: tasks.bookHotel, compensate: tasks.takeBackHotel },
    // Where to fetch the car is known when the flight is.
    { id: 'car', needs: ['flight'], task: tasks.bookCar, compensate: tasks.takeBackCar },
    { id: 'payment', needs: ['flight', 'hotel', 'car'], task: tasks.waitForPayment },
  ])
  .to('booked')
  .cancelTo('canceled')
  .onFailure('retry from current', { maxRetry: 5 });

export default defineKind(schema, {
  states: {
    new: { flow: bookTrip },
    booked: { ready: true },
    canceled: {},
    failed: { failed: true },
  },
  tasks,
  rbac: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch', 'delete'] }],
});
